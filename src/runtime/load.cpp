#include "base/digest.h"
#include "isa/x86_64/geometry.h"
#include "runtime/engine_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace plow {
namespace {

Status check_header(const BundleHeader& header, const EngineOptions& options) {
  if (header.isa != Isa::kX86_64) {
    const char* name = isa_name(header.isa);
    return input_error(fmt::format(
        "The bundle is for the instruction set {}; this engine runs {}. Compile it for {}.",
        name != nullptr ? name : "of an unknown number", isa_name(Isa::kX86_64), isa_name(Isa::kX86_64)));
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
  for (size_t i = 0; i < program.packets.size(); ++i) {
    const Packet& packet = program.packets[i];
    const std::string reason = unsupported_reason(packet, program.tensors.data());
    if (!reason.empty()) {
      return input_error(fmt::format(
          "Packet {} of program {} cannot run here: {}. Compile the bundle with this version of plowc.", i,
          index, reason));
    }
    const uint64_t scratch =
        body_scratch_bytes(packet, program.tensors.data(), row_tile_of(*program.entry, packet));
    if (scratch > bundle.header().scratch_bytes) {
      return input_error(
          fmt::format("Packet {} of program {} needs {} bytes of scratch, and the bundle grants {}. Compile "
                      "the bundle again.",
                      i, index, scratch, bundle.header().scratch_bytes));
    }
  }
  return {};
}

Status check_kv_groups(std::span<const KvGroup> groups) {
  for (size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].block_tokens == x86_64::kKvBlockTokens) continue;
    return input_error(
        fmt::format("KV group {} has blocks of {} positions; x86-64 needs {}. Compile the bundle again.", g,
                    groups[g].block_tokens, x86_64::kKvBlockTokens));
  }
  return {};
}

ProgramTable table_of(const ProgramView& view) {
  return {view.workers.data(),        view.packets.data(),         view.waits.data(),
          view.signals.data(),        view.stream.data(),          view.tensors.data(),
          view.entry->token_row_tile, view.entry->sample_row_tile, view.entry->n_counters};
}

}  // namespace

// The steps of making an engine, in order; each needs the ones before it.
struct EngineLoader {
  Engine::State& state;
  const EngineOptions& options;

  Status check() const {
    PLOW_TRY_STATUS(check_header(state.bundle.header(), options));
    PLOW_TRY_STATUS(check_tape(state.bundle.header(), state.tape, options.verify_tape));
    PLOW_TRY_STATUS(check_kv_groups(state.bundle.kv_groups()));
    for (uint32_t i = 0; i < state.bundle.programs().size(); ++i)
      PLOW_TRY_STATUS(check_program(state.bundle, i));
    PLOW_TRY(state.isa, choose_isa_level(options.isa));
    return {};
  }

  void set_sizes() const {
    const BundleHeader& header = state.bundle.header();
    state.context = options.context != 0 ? options.context : header.max_context;
    state.slots.resize(options.slots != 0 ? options.slots : header.max_slots);
    for (const ProgramView& program : state.bundle.programs()) {
      state.max_rows = std::max(state.max_rows, program.entry->max_rows);
      state.max_samples = std::max(state.max_samples, program.entry->max_samples);
      state.programs.push_back(table_of(program));
    }
  }

  Status allocate() const {
    const MemoryPlan plan =
        plan_memory(state.bundle, static_cast<uint32_t>(state.slots.size()), state.context);
    PLOW_TRY(state.arena, DeviceMemory::allocate(plan.arena, "activations"));
    PLOW_TRY(state.counters, DeviceMemory::allocate(plan.counters, "counters"));
    PLOW_TRY(state.scratch,
             DeviceMemory::allocate(uint64_t{scratch_stride()} * state.bundle.header().n_workers, "scratch"));
    std::vector<uint32_t> blocks;
    for (const KvGroup& group : state.bundle.kv_groups()) {
      const uint64_t per_slot = blocks_per_sequence(group, state.context, state.max_rows);
      const uint64_t total = blocks_of(group, per_slot);
      if (total >= kNoBlock)
        return does_not_fit(fmt::format("The KV cache would have {} blocks. Ask for fewer slots.", total));
      blocks.push_back(static_cast<uint32_t>(total));
      PLOW_TRY(DeviceMemory pool, DeviceMemory::allocate(total * group.block_bytes, "the KV cache"));
      state.pool_pointers.push_back(pool.data());
      state.pools.push_back(std::move(pool));
    }
    state.cache = std::make_unique<KvCache>(state.bundle.kv_groups(), blocks,
                                            static_cast<uint32_t>(state.slots.size()), state.context);
    return {};
  }

  uint64_t blocks_of(const KvGroup& group, uint64_t per_slot) const {
    const uint64_t all = per_slot * state.slots.size();
    if (options.cache_positions == 0 || group.window != 0) return all;
    const uint64_t wanted = (options.cache_positions + group.block_tokens - 1) / group.block_tokens;
    return std::clamp(wanted, per_slot, all);
  }

  uint64_t scratch_stride() const {
    return (uint64_t{state.bundle.header().scratch_bytes} + kCounterLineBytes - 1) / kCounterLineBytes *
           kCounterLineBytes;
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

  void set_device() const {
    Device& device = state.device;
    device.programs = state.programs.data();
    device.tape = reinterpret_cast<const unsigned char*>(state.tape.data());
    device.arena = state.arena.data();
    device.kv_pools = state.pool_pointers.data();
    device.kv_groups = state.bundle.kv_groups().data();
    device.counters = state.counters.data();
    for (const ProgramTable& program : state.programs)
      device.bank_lines = std::max(device.bank_lines, program.n_counters);
    device.n_workers = state.bundle.header().n_workers;
    device.history_stride = state.context;
    device.deadline_ns = static_cast<uint64_t>(std::chrono::nanoseconds(options.deadline).count());
    device.step = &state.step;
    device.control = &state.control;
  }

  Status run() const {
    PLOW_TRY_STATUS(check());
    set_sizes();
    PLOW_TRY_STATUS(allocate());
    set_arrays();
    set_device();
    PLOW_TRY(state.workers, WorkerThreads::start(x86_64_interpreter(state.isa), state.device,
                                                 state.scratch.data(), scratch_stride(), options.pin));
    return {};
  }
};

Result<Engine> Engine::create(BundleFile bundle, std::span<const std::byte> tape,
                              const EngineOptions& options) {
  auto state = std::make_unique<State>();
  state->bundle = std::move(bundle);
  state->tape = tape;
  PLOW_TRY_STATUS(EngineLoader{*state, options}.run());
  return Engine(std::move(state));
}

Result<Engine> Engine::load(const std::filesystem::path& directory, const EngineOptions& options) {
  auto state = std::make_unique<State>();
  PLOW_TRY(state->bundle, BundleFile::open(directory / "model.pkt"));
  PLOW_TRY(state->tape_file, MappedFile::open(directory / "weights.tape"));
  state->tape = state->tape_file.bytes();
  if (Status status = EngineLoader{*state, options}.run(); !status.ok())
    return status.error().at(directory.string());
  return Engine(std::move(state));
}

}  // namespace plow
