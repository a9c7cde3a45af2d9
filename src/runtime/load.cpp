#include "base/digest.h"
#include "bundle/receipt.h"
#include "isa/gpu/geometry.h"
#include "isa/gpu/support.h"
#include "isa/x86_64/geometry.h"
#include "runtime/cpu_device.h"
#include "runtime/cuda/cuda_driver.h"
#include "runtime/engine_state.h"
#include "runtime/hsa/hsa_driver.h"
#include "runtime/resident_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

namespace plow {
namespace {

Status check_header(const BundleHeader& header, const EngineOptions& options) {
  if (options.threads != 0 && header.isa != Isa::kX86_64) {
    return usage_error(fmt::format("The bundle is for {}, whose workers are no threads. Leave --threads out.",
                                   isa_name(header.isa)));
  }
  if (options.threads != 0 && options.threads != header.n_workers) {
    return usage_error(
        fmt::format("The bundle is scheduled for {} workers and {} threads were asked for. Run it with {} "
                    "threads, or compile "
                    "it for {} workers.",
                    header.n_workers, options.threads, header.n_workers, options.threads));
  }
  if (options.slots > header.max_slots) {
    return usage_error(
        fmt::format("The bundle has at most {} slots; {} were asked for.", header.max_slots, options.slots));
  }
  if (options.context > header.max_context) {
    return usage_error(fmt::format("The bundle's context is {} positions; {} were asked for.",
                                   header.max_context, options.context));
  }
  return {};
}

Status check_tape(const BundleHeader& header, std::span<const std::byte> tape, bool verify) {
  if (tape.size() != header.tape_bytes) {
    return input_error(
        fmt::format("The weights have {} bytes; the bundle was written with {}. Copy the whole bundle again.",
                    tape.size(), header.tape_bytes));
  }
  if (verify && xxh3_128(tape) != Digest128{header.tape_digest_low, header.tape_digest_high}) {
    return input_error(
        "The weights were altered since the bundle was written: their digest differs. Copy the bundle "
        "again.");
  }
  return {};
}

uint32_t row_tile_of(const ProgramEntry& entry, const Packet& packet) {
  const Rows rows = static_cast<Rows>(packet.row_kind);
  return rows == Rows::kTokens ? entry.token_row_tile : rows == Rows::kSamples ? entry.sample_row_tile : 1;
}

Status check_program(const BundleFile& bundle, uint32_t index) {
  const ProgramView& program = bundle.programs()[index];
  const bool cpu = bundle.header().isa == Isa::kX86_64;
  for (size_t i = 0; i < program.packets.size(); ++i) {
    const Packet& packet = program.packets[i];
    const std::string reason = cpu ? unsupported_reason(packet, program.tensors.data())
                                   : gpu::unsupported_reason(packet, program.tensors.data());
    if (!reason.empty()) {
      return input_error(fmt::format(
          "Packet {} of program {} cannot run here: {}. Compile the bundle with this version of plowc.", i,
          index, reason));
    }
    const uint64_t scratch =
        cpu ? body_scratch_bytes(packet, program.tensors.data(), row_tile_of(*program.entry, packet))
            : gpu::body_scratch_bytes(packet, program.tensors.data());
    if (scratch > bundle.header().scratch_bytes) {
      return input_error(
          fmt::format("Packet {} of program {} needs {} bytes of scratch, and the bundle grants {}. Compile "
                      "the bundle again.",
                      i, index, scratch, bundle.header().scratch_bytes));
    }
  }
  return {};
}

Status check_kv_groups(std::span<const KvGroup> groups, Isa isa) {
  const uint32_t needed = isa == Isa::kX86_64 ? x86_64::kKvBlockTokens : gpu::kKvBlockTokens;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].block_tokens == needed) continue;
    return input_error(
        fmt::format("KV group {} has blocks of {} positions; {} needs {}. Compile the bundle again.", g,
                    groups[g].block_tokens, isa_name(isa), needed));
  }
  return {};
}

// A device as it is named: "cpu", "cuda:N" or "hsa:N".
struct NamedDevice {
  std::string_view vendor;  // as in abi/isas.def
  uint32_t ordinal = 0;
};
std::optional<NamedDevice> parse_device(std::string_view name) {
  if (name == "cpu") return NamedDevice{"cpu"};
  for (const auto& [prefix, vendor] : {std::pair{std::string_view("cuda:"), "nvidia"}, {"hsa:", "amd"}}) {
    if (!name.starts_with(prefix)) continue;
    NamedDevice device{vendor};
    const char* end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, device.ordinal);
    if (error == std::errc() && rest == end) return device;
  }
  return std::nullopt;
}

// A device that was named must be of the bundle's kind: nothing is replaced silently.
Status check_device(const std::string& name, Isa isa) {
  if (name.empty()) return {};
  const auto device = parse_device(name);
  if (!device)
    return usage_error(fmt::format("'{}' is no device; choose cpu, cuda:N or hsa:N, N from 0 on.", name));
  if (device->vendor == isa_vendor(isa)) return {};
  return usage_error(
      fmt::format("The bundle is for {}, and {} does not run that. Compile it for the device with plowc "
                  "--arch, or choose another "
                  "--device.",
                  isa_name(isa), name));
}

// A GPU of the vendor whose code the bundle holds: the one that was named, else the first.
Result<std::unique_ptr<GpuDriver>> open_gpu(const std::string& name, Isa isa) {
  const auto device = parse_device(name);
  const uint32_t ordinal = device ? device->ordinal : 0;
  const bool amd = isa_vendor(isa) == std::string_view("amd");
  auto driver = amd ? open_hsa(ordinal) : open_cuda(ordinal);
  if (driver.ok()) return driver;
  Error error = driver.error();
  if (error.message.ends_with('.')) error.message.pop_back();
  error.message = fmt::format(
      "The bundle is for {}, a GPU of {}, and cannot be run here: {}. Run plowrt doctor for "
      "what is here, or compile for it with plowc --arch.",
      isa_name(isa), amd ? "AMD" : "NVIDIA", error.message);
  return error;
}

}  // namespace

// The steps of making an engine, in order; each needs the ones before it.
struct EngineLoader {
  Engine::State& state;
  const EngineOptions& options;

  Status check() const {
    const Isa isa = state.bundle.header().isa;
    PLOW_TRY_STATUS(check_device(options.device, isa));
    PLOW_TRY_STATUS(check_header(state.bundle.header(), options));
    if (options.random_weights && isa == Isa::kX86_64)
      return usage_error("Random weights are made by a GPU; the bundle is for the CPU.");
    if (!options.random_weights)
      PLOW_TRY_STATUS(check_tape(state.bundle.header(), state.tape, options.verify_tape));
    PLOW_TRY_STATUS(check_kv_groups(state.bundle.kv_groups(), isa));
    for (uint32_t i = 0; i < state.bundle.programs().size(); ++i)
      PLOW_TRY_STATUS(check_program(state.bundle, i));
    if (isa == Isa::kX86_64) {
      PLOW_TRY(state.isa, choose_isa_level(options.isa));
    }
    return {};
  }

  void set_sizes() const {
    const BundleHeader& header = state.bundle.header();
    state.context = options.context != 0 ? options.context : header.max_context;
    state.slots.resize(options.slots != 0 ? options.slots : header.max_slots);
    for (const ProgramView& program : state.bundle.programs()) {
      state.max_rows = std::max(state.max_rows, program.entry->max_rows);
      state.max_samples = std::max(state.max_samples, program.entry->max_samples);
    }
  }

  Status make_cache(DevicePlan& plan) const {
    for (const KvGroup& group : state.bundle.kv_groups()) {
      const uint64_t per_slot = blocks_per_sequence(group, state.context, state.max_rows);
      const uint64_t total = blocks_of(group, per_slot);
      if (total >= kNoBlock)
        return does_not_fit(fmt::format("The KV cache would have {} blocks. Ask for fewer slots.", total));
      plan.kv_blocks.push_back(static_cast<uint32_t>(total));
    }
    state.cache = std::make_unique<KvCache>(state.bundle.kv_groups(), plan.kv_blocks,
                                            static_cast<uint32_t>(state.slots.size()), state.context);
    plan.table_width = state.cache->table_width();
    return {};
  }

  uint64_t blocks_of(const KvGroup& group, uint64_t per_slot) const {
    const uint64_t all = per_slot * state.slots.size();
    if (options.cache_positions == 0 || group.window != 0) return all;
    const uint64_t wanted = (options.cache_positions + group.block_tokens - 1) / group.block_tokens;
    return std::clamp(wanted, per_slot, all);
  }

  void set_arrays() const {
    StepArrays& arrays = state.arrays;
    arrays.token_ids.resize(state.max_rows);
    arrays.positions.resize(state.max_rows);
    arrays.row_slots.resize(state.max_rows);
    arrays.spans.resize(state.max_rows);
    arrays.sample_rows.resize(state.max_samples);
    arrays.sampling.resize(state.max_samples);
    arrays.sampled.resize(size_t{kMaxSteps} * state.max_samples);
    arrays.top.resize(size_t{kMaxSteps} * kMaxTop * state.max_samples);
    arrays.history.resize(state.slots.size() * state.context);
    for (uint32_t g = 0; g < state.cache->n_groups(); ++g)
      arrays.block_tables.push_back(state.cache->table(g));
    state.step.spans = arrays.spans.data();
    state.step.token_ids = arrays.token_ids.data();
    state.step.positions = arrays.positions.data();
    state.step.row_slots = arrays.row_slots.data();
    state.step.sample_rows = arrays.sample_rows.data();
    state.step.sampling = arrays.sampling.data();
    state.step.sampled = arrays.sampled.data();
    state.step.block_tables = arrays.block_tables.data();
    state.step.history = arrays.history.data();
    state.step.table_width = state.cache->table_width();
  }

  Status make_device(const DevicePlan& plan, std::unique_ptr<GpuDriver> driver) const {
    if (driver == nullptr && state.bundle.header().isa == Isa::kX86_64) {
      PLOW_TRY(state.device, CpuDevice::create(plan, state.isa, options.pin));
      return {};
    }
    if (driver == nullptr) {
      PLOW_TRY(driver, open_gpu(options.device, state.bundle.header().isa));
    }
    PLOW_TRY(state.device, ResidentDevice::create(plan, std::move(driver)));
    return {};
  }

  // On a CPU a step goes through all weights, so they are copied into huge pages: those of a mapped file are
  // as large as the kernel happened to read it, and a step of 4 rows took a fifth longer
  // (perf/2026-11-30-rewriting-on-the-cpu.md). Weights of more than half of the machine's memory stay where
  // they are, and so do those that the caller holds.
  Status place_weights() const {
    const uint64_t bytes = state.tape_file.bytes().size();
    const auto machine =
        static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    if (bytes == 0 || bytes > machine / 2 || state.bundle.header().isa != Isa::kX86_64) return {};
    PLOW_TRY(state.weights, DeviceMemory::allocate(bytes, "the weights"));
    std::memcpy(state.weights.data(), state.tape.data(), bytes);
    state.tape = std::as_bytes(std::span(state.weights.data(), bytes));
    state.tape_file = MappedFile();
    return {};
  }

  Status run(std::unique_ptr<GpuDriver> driver) const {
    PLOW_TRY_STATUS(check());
    PLOW_TRY_STATUS(place_weights());
    set_sizes();
    DevicePlan plan;
    plan.bundle = &state.bundle;
    plan.tape = state.tape;
    plan.slots = static_cast<uint32_t>(state.slots.size());
    plan.context = state.context;
    plan.max_rows = state.max_rows;
    plan.max_samples = state.max_samples;
    plan.deadline = options.deadline;
    plan.random_weights = options.random_weights;
    plan.trace = options.trace;
    PLOW_TRY_STATUS(make_cache(plan));
    set_arrays();
    return make_device(plan, std::move(driver));
  }
};

Result<Engine> Engine::create_on(BundleFile bundle, std::span<const std::byte> tape,
                                 const EngineOptions& options, std::unique_ptr<GpuDriver> driver) {
  auto state = std::make_unique<State>();
  state->bundle = std::move(bundle);
  state->tape = tape;
  PLOW_TRY_STATUS(EngineLoader{*state, options}.run(std::move(driver)));
  return Engine(std::move(state));
}

Result<Engine> Engine::create(BundleFile bundle, std::span<const std::byte> tape,
                              const EngineOptions& options) {
  return create_on(std::move(bundle), tape, options, nullptr);
}

Result<Engine> Engine::load(const std::filesystem::path& directory, const EngineOptions& options) {
  auto state = std::make_unique<State>();
  PLOW_TRY(state->bundle, BundleFile::open(directory / "model.pkt"));
  if (options.require_receipt) PLOW_TRY_STATUS(check_receipt_of(directory));
  if (!options.random_weights) {
    PLOW_TRY(state->tape_file, MappedFile::open(directory / "weights.tape"));
    state->tape = state->tape_file.bytes();
  }
  if (Status status = EngineLoader{*state, options}.run(nullptr); !status.ok())
    return status.error().at(directory.string());
  return Engine(std::move(state));
}

}  // namespace plow
