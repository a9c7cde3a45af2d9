#include "runtime/resident_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

namespace plow {
namespace {

using Clock = std::chrono::steady_clock;

// How long a kernel without work keeps the GPU to itself.
constexpr std::chrono::milliseconds kIdle{200};
// Looks at the mailbox between two looks at the kernel, which ask the driver.
constexpr uint32_t kLooksBetweenQueries = 4096;
// The tape goes over in pieces, so that reading it from disk and copying overlap in the driver's staging.
constexpr uint64_t kTapePiece = uint64_t{64} << 20;

uint32_t load_word(const uint32_t& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }
void store_word(uint32_t& word, uint32_t value) { __atomic_store_n(&word, value, __ATOMIC_RELEASE); }

// Lines of the device's words.
constexpr uint64_t kControlBytes =
    (sizeof(Control) + kCounterLineBytes - 1) / kCounterLineBytes * kCounterLineBytes;
constexpr uint64_t kWordBytes = kControlBytes + 2 * kCounterLineBytes;

template <class T>
Result<T*> device_array(GpuDriver& driver, uint64_t count, const char* what) {
  PLOW_TRY(unsigned char* at, driver.allocate(std::max<uint64_t>(count, 1) * sizeof(T), what));
  return reinterpret_cast<T*>(at);
}

template <class T>
Result<T*> host_array(GpuDriver& driver, uint64_t count) {
  PLOW_TRY(unsigned char* at,
           driver.allocate_host(std::max<uint64_t>(count, 1) * sizeof(T), "a step's arrays"));
  return reinterpret_cast<T*>(at);
}

template <class T>
Result<T*> uploaded(GpuDriver& driver, std::span<const T> from, const char* what) {
  PLOW_TRY(T * at, device_array<T>(driver, from.size(), what));
  if (!from.empty())
    PLOW_TRY_STATUS(driver.upload(reinterpret_cast<unsigned char*>(at), from.data(), from.size_bytes()));
  return at;
}

Status check_target(const BundleHeader& header, const GpuFacts& gpu) {
  if (header.isa != gpu.isa) {
    return device_error(fmt::format("The bundle is for {}, and {} runs {}. Compile it with --arch {}.",
                                    isa_name(header.isa), gpu.name, isa_name(gpu.isa), isa_name(gpu.isa)));
  }
  if (header.n_workers != gpu.n_workers) {
    return device_error(
        fmt::format("The bundle is scheduled for {} workers, and {} has {} multiprocessors. Compile it with "
                    "--workers {}.",
                    header.n_workers, gpu.name, gpu.n_workers, gpu.n_workers));
  }
  return {};
}

}  // namespace

Status ResidentDevice::upload_tape(std::span<const std::byte> tape) {
  PLOW_TRY(unsigned char* at, driver_->allocate(tape.size(), "the weights"));
  for (uint64_t offset = 0; offset < tape.size(); offset += kTapePiece) {
    const uint64_t bytes = std::min<uint64_t>(kTapePiece, tape.size() - offset);
    PLOW_TRY_STATUS(driver_->upload(at + offset, tape.data() + offset, bytes));
  }
  resident_.device.tape = at;
  return {};
}

// Weights of a bundle that has none: matrices so that products keep the size of their inputs, gains and
// biases of 1, frequencies of base 10,000. For measuring.
Status ResidentDevice::make_random_tape() {
  const uint64_t bytes = bundle_->header().tape_bytes;
  PLOW_TRY(unsigned char* at, driver_->allocate(bytes, "the weights"));
  for (const ProgramView& program : bundle_->programs()) {
    for (const TensorEntry& tensor : program.tensors) {
      if (tensor.space != Space::kTape) continue;
      const uint64_t element = dtype_bytes(tensor.dtype);
      if (tensor.layout == Layout::kAtoms8x128) {
        const float bound = std::sqrt(3.0f / static_cast<float>(tensor.cols));
        PLOW_TRY_STATUS(driver_->fill_random(at + tensor.offset, tensor.bytes / element, tensor.dtype, bound,
                                             tensor.offset + 1));
        continue;
      }
      std::vector<std::byte> values(tensor.bytes);
      for (uint64_t i = 0; i < tensor.bytes / element; ++i) {
        const double frequency = std::pow(1e4, -static_cast<double>(i) / static_cast<double>(tensor.cols));
        const float one = 1;
        const uint16_t narrow = tensor.dtype == DType::kBf16 ? 0x3f80 : 0x3c00;
        std::byte* to = values.data() + i * element;
        if (tensor.dtype == DType::kF64) std::memcpy(to, &frequency, sizeof(frequency));
        if (tensor.dtype == DType::kF32) std::memcpy(to, &one, sizeof(one));
        if (element == 2) std::memcpy(to, &narrow, sizeof(narrow));
      }
      PLOW_TRY_STATUS(driver_->upload(at + tensor.offset, values.data(), values.size()));
    }
  }
  resident_.device.tape = at;
  return {};
}

Result<double> ResidentDevice::read_bandwidth() {
  PLOW_TRY_STATUS(stop());
  return driver_->read_bandwidth(resident_.device.tape, bundle_->header().tape_bytes);
}

Status ResidentDevice::upload_programs(const DevicePlan& plan) {
  std::vector<ProgramTable> tables;
  for (const ProgramView& view : plan.bundle->programs()) {
    ProgramTable table = table_of(view);
    PLOW_TRY(table.workers, uploaded<WorkerEntry>(*driver_, view.workers, "packets"));
    PLOW_TRY(table.packets, uploaded<Packet>(*driver_, view.packets, "packets"));
    PLOW_TRY(table.waits, uploaded<Wait>(*driver_, view.waits, "packets"));
    PLOW_TRY(table.signals, uploaded<Signal>(*driver_, view.signals, "packets"));
    PLOW_TRY(table.stream, uploaded<StreamEntry>(*driver_, view.stream, "packets"));
    PLOW_TRY(table.tensors, uploaded<TensorEntry>(*driver_, view.tensors, "packets"));
    resident_.device.bank_lines = std::max(resident_.device.bank_lines, table.n_counters);
    tables.push_back(table);
  }
  PLOW_TRY(resident_.device.programs, uploaded<ProgramTable>(*driver_, tables, "packets"));
  PLOW_TRY(resident_.device.kv_groups, uploaded<KvGroup>(*driver_, plan.bundle->kv_groups(), "packets"));
  return {};
}

Status ResidentDevice::allocate(const DevicePlan& plan) {
  const MemoryPlan memory = plan_memory(*plan.bundle, plan.slots, plan.context);
  const BundleHeader& header = plan.bundle->header();
  Device& device = resident_.device;
  PLOW_TRY(device.arena, driver_->allocate(memory.arena, "activations"));
  counter_bytes_ = memory.counters;
  PLOW_TRY(device.counters, driver_->allocate(counter_bytes_, "counters"));
  resident_.scratch_stride =
      (uint64_t{header.scratch_bytes} + kCounterLineBytes - 1) / kCounterLineBytes * kCounterLineBytes;
  PLOW_TRY(resident_.scratch,
           driver_->allocate(std::max<uint64_t>(resident_.scratch_stride, 1) * header.n_workers, "scratch"));
  std::vector<unsigned char*> pools;
  for (size_t g = 0; g < plan.kv_blocks.size(); ++g) {
    PLOW_TRY(unsigned char* pool,
             driver_->allocate(plan.kv_blocks[g] * plan.bundle->kv_groups()[g].block_bytes, "the KV cache"));
    pools.push_back(pool);
  }
  PLOW_TRY(device.kv_pools, uploaded<unsigned char*>(*driver_, pools, "the KV cache"));
  PLOW_TRY(words_at_, driver_->allocate(kWordBytes, "counters"));
  device.control = reinterpret_cast<Control*>(words_at_);
  resident_.go = reinterpret_cast<uint32_t*>(words_at_ + kControlBytes);
  resident_.back = reinterpret_cast<uint32_t*>(words_at_ + kControlBytes + kCounterLineBytes);
  device.n_workers = header.n_workers;
  device.history_stride = plan.context;
  device.deadline_ns = static_cast<uint64_t>(plan.deadline.count());
  resident_.idle_ns = static_cast<uint64_t>(std::chrono::nanoseconds(kIdle).count());
  if (plan.trace) {
    device.times_stride = longest_list(*plan.bundle);
    PLOW_TRY(device.times,
             device_array<PacketTimes>(*driver_, uint64_t{device.times_stride} * header.n_workers, "a trace"));
  }
  return {};
}

// The device's own descriptor, with room for the largest step.
Status ResidentDevice::make_step_arrays(const DevicePlan& plan) {
  GpuDriver& driver = *driver_;
  const char* what = "a step's arrays";
  PLOW_TRY(device_step_.token_ids, device_array<uint32_t>(driver, plan.max_rows, what));
  PLOW_TRY(device_step_.positions, device_array<uint32_t>(driver, plan.max_rows, what));
  PLOW_TRY(resident_.row_slots, device_array<uint32_t>(driver, plan.max_rows, what));
  PLOW_TRY(resident_.spans, device_array<Span>(driver, plan.max_rows, what));
  PLOW_TRY(resident_.sample_rows, device_array<uint32_t>(driver, plan.max_samples, what));
  PLOW_TRY(resident_.sampling, device_array<SamplingParams>(driver, plan.max_samples, what));
  PLOW_TRY(device_step_.sampled, device_array<Sampled>(driver, uint64_t{kMaxSteps} * plan.max_samples, what));
  PLOW_TRY(device_step_.history,
           device_array<uint32_t>(driver, uint64_t{plan.slots} * plan.context, "histories"));
  std::vector<uint32_t*> tables;
  for (size_t g = 0; g < plan.kv_blocks.size(); ++g) {
    PLOW_TRY(uint32_t * table,
             device_array<uint32_t>(driver, uint64_t{plan.slots} * plan.table_width, "block tables"));
    tables.push_back(table);
  }
  PLOW_TRY(uint32_t * *tables_at, uploaded<uint32_t*>(driver, tables, "block tables"));
  resident_.tables = tables_at;
  resident_.n_kv_groups = static_cast<uint32_t>(tables.size());
  device_step_.block_tables = tables_at;
  device_step_.row_slots = resident_.row_slots;
  device_step_.spans = resident_.spans;
  device_step_.sample_rows = resident_.sample_rows;
  device_step_.sampling = resident_.sampling;
  device_step_.table_width = plan.table_width;
  PLOW_TRY(step_at_, driver.allocate(sizeof(StepDescriptor), what));
  resident_.device.step = reinterpret_cast<StepDescriptor*>(step_at_);
  return {};
}

// The mailbox and the arrays that the device reads from it.
Status ResidentDevice::make_host_arrays(const DevicePlan& plan) {
  GpuDriver& driver = *driver_;
  PLOW_TRY(mailbox_, host_array<Mailbox>(driver, 1));
  StepDescriptor& step = mailbox_->step;
  PLOW_TRY(step.spans, host_array<Span>(driver, plan.max_rows));
  PLOW_TRY(step.token_ids, host_array<uint32_t>(driver, plan.max_rows));
  PLOW_TRY(step.positions, host_array<uint32_t>(driver, plan.max_rows));
  PLOW_TRY(step.row_slots, host_array<uint32_t>(driver, plan.max_rows));
  PLOW_TRY(step.sample_rows, host_array<uint32_t>(driver, plan.max_samples));
  PLOW_TRY(step.sampling, host_array<SamplingParams>(driver, plan.max_samples));
  PLOW_TRY(step.sampled, host_array<Sampled>(driver, uint64_t{kMaxSteps} * plan.max_samples));
  mask_words_ = (bundle_->header().vocab + 31) / 32;
  PLOW_TRY(masks_, host_array<uint32_t>(driver, uint64_t{plan.max_samples} * mask_words_));
  PLOW_TRY(biases_, host_array<TokenBias>(driver, uint64_t{plan.max_samples} * kMaxBias));
  PLOW_TRY(tops_, host_array<Sampled>(driver, uint64_t{plan.max_samples} * kMaxSteps * kMaxTop));
  PLOW_TRY(const uint32_t** tables, host_array<const uint32_t*>(driver, plan.kv_blocks.size()));
  for (size_t g = 0; g < plan.kv_blocks.size(); ++g) {
    PLOW_TRY(tables[g], host_array<uint32_t>(driver, uint64_t{plan.slots} * plan.table_width));
  }
  step.block_tables = tables;
  step.table_width = plan.table_width;
  resident_.mailbox = mailbox_;
  return {};
}

Result<std::unique_ptr<ResidentDevice>> ResidentDevice::create(const DevicePlan& plan,
                                                               std::unique_ptr<GpuDriver> driver) {
  PLOW_TRY_STATUS(check_target(plan.bundle->header(), driver->facts()));
  auto device = std::make_unique<ResidentDevice>();
  device->driver_ = std::move(driver);
  device->bundle_ = plan.bundle;
  PLOW_TRY_STATUS(plan.random_weights ? device->make_random_tape() : device->upload_tape(plan.tape));
  PLOW_TRY_STATUS(device->allocate(plan));
  PLOW_TRY_STATUS(device->upload_programs(plan));
  PLOW_TRY_STATUS(device->make_step_arrays(plan));
  PLOW_TRY_STATUS(device->make_host_arrays(plan));
  PLOW_TRY(device->resident_at_, device->driver_->allocate(sizeof(Resident), "the kernel's parameters"));
  return device;
}

ResidentDevice::~ResidentDevice() { (void)stop(); }

// Launches the kernel anew: counters and epochs begin again.
Status ResidentDevice::start() {
  PLOW_TRY_STATUS(driver_->zero(resident_.device.counters, counter_bytes_));
  PLOW_TRY_STATUS(driver_->zero(words_at_, kWordBytes));
  epoch_ = 0;
  resident_.first_call = load_word(mailbox_->served);
  store_word(mailbox_->stop, 0);
  // Workers wait for a call other than the first: begin with that one.
  PLOW_TRY_STATUS(driver_->upload(reinterpret_cast<unsigned char*>(resident_.go), &resident_.first_call,
                                  sizeof(uint32_t)));
  PLOW_TRY_STATUS(driver_->upload(step_at_, &device_step_, sizeof(device_step_)));
  PLOW_TRY_STATUS(driver_->upload(resident_at_, &resident_, sizeof(resident_)));
  PLOW_TRY_STATUS(driver_->launch(reinterpret_cast<const Resident*>(resident_at_)));
  launched_ = true;
  ++launches_;
  return {};
}

Status ResidentDevice::stop() {
  if (!launched_) return {};
  store_word(mailbox_->stop, 1);
  const auto began = Clock::now();
  // A kernel that serves nothing ends within microseconds; one that stands in a step, within the deadline of
  // its waits.
  const auto patience = std::chrono::nanoseconds(2 * resident_.device.deadline_ns) + std::chrono::seconds(1);
  for (;;) {
    PLOW_TRY(const bool running, driver_->running());
    if (!running) break;
    if (Clock::now() - began > patience) return device_error("The kernel does not end. Restart the program.");
    std::this_thread::yield();
  }
  launched_ = false;
  return {};
}

void ResidentDevice::fill_mailbox(const StepDescriptor& step) {
  StepDescriptor& to = mailbox_->step;
  to.program = step.program;
  to.n_rows = step.n_rows;
  to.n_samples = step.n_samples;
  to.n_spans = step.n_spans;
  to.n_steps = step.n_steps;
  std::copy_n(step.spans, step.n_spans, const_cast<Span*>(to.spans));
  std::copy_n(step.token_ids, step.n_rows, to.token_ids);
  std::copy_n(step.positions, step.n_rows, to.positions);
  std::copy_n(step.row_slots, step.n_rows, const_cast<uint32_t*>(to.row_slots));
  std::copy_n(step.sample_rows, step.n_samples, const_cast<uint32_t*>(to.sample_rows));
  for (uint32_t s = 0; s < step.n_samples; ++s) {
    SamplingParams& params = const_cast<SamplingParams*>(to.sampling)[s];
    params = step.sampling[s];
    // What a parameter points to is left in the host's memory: it is rare, and only the worker that samples
    // the row reads or writes its own.
    if (params.mask != nullptr) {
      uint32_t* mask = masks_ + size_t{s} * mask_words_;
      std::copy_n(params.mask, mask_words_, mask);
      params.mask = mask;
    }
    TokenBias* biases = biases_ + size_t{s} * kMaxBias;
    std::copy_n(params.bias, params.n_bias, biases);
    params.bias = biases;
    params.top = tops_ + size_t{s} * kMaxSteps * kMaxTop;
  }
  for (uint32_t g = 0; g < resident_.n_kv_groups; ++g) {
    const uint32_t tokens = bundle_->kv_groups()[g].block_tokens;
    for (uint32_t s = 0; s < step.n_spans; ++s) {
      const Span& span = step.spans[s];
      const size_t row = size_t{span.slot} * step.table_width;
      const uint32_t blocks = (span.first_position + span.n_rows + step.n_steps - 1 + tokens - 1) / tokens;
      std::copy_n(step.block_tables[g] + row, blocks, const_cast<uint32_t*>(to.block_tables[g]) + row);
    }
  }
}

Result<std::optional<Fault>> ResidentDevice::run(StepDescriptor& step) {
  fill_mailbox(step);
  if (launched_ && epoch_ >= kLastEpoch) PLOW_TRY_STATUS(stop());
  mailbox_->step.epoch = step.epoch = epoch_ + 1;
  const uint32_t call = mailbox_->bell + 1;
  store_word(mailbox_->bell, call);
  for (uint32_t looks = 0; load_word(mailbox_->served) != call; ++looks) {
    if (launched_ && looks % kLooksBetweenQueries != kLooksBetweenQueries - 1) {
      __builtin_ia32_pause();
      continue;
    }
    if (launched_) {
      PLOW_TRY(launched_, driver_->running());
    }
    if (launched_ || load_word(mailbox_->served) == call) continue;
    // Not launched yet, or it ended for want of work just when the bell rang: no step is lost, since it says
    // which calls it served.
    epoch_ = 0;
    mailbox_->step.epoch = step.epoch = 1;
    PLOW_TRY_STATUS(start());
  }
  if (mailbox_->aborted != 0) {
    const Fault fault = mailbox_->fault;
    PLOW_TRY_STATUS(stop());  // the next step gets a fresh kernel
    return std::optional(fault);
  }
  epoch_ += step.n_steps;
  std::copy_n(mailbox_->step.sampled, size_t{step.n_steps} * step.n_samples, step.sampled);
  for (uint32_t s = 0; s < step.n_samples; ++s) {
    const SamplingParams& params = mailbox_->step.sampling[s];
    std::copy_n(params.top, size_t{step.n_steps} * params.n_top, step.sampling[s].top);
  }
  return std::optional<Fault>();
}

Result<std::vector<std::vector<PacketTimes>>> ResidentDevice::read_times(uint32_t program) {
  const Device& device = resident_.device;
  if (device.times == nullptr) return usage_error("The engine was made without a trace.");
  std::vector<std::vector<PacketTimes>> times;
  const auto workers = bundle_->programs()[program].workers;
  for (size_t w = 0; w < workers.size(); ++w) {
    times.emplace_back(workers[w].n_packets);
    PLOW_TRY_STATUS(driver_->download(times.back().data(),
                                      reinterpret_cast<const unsigned char*>(device.times + w * device.times_stride),
                                      times.back().size() * sizeof(PacketTimes)));
  }
  return times;
}

Status ResidentDevice::write_history(uint32_t slot, uint32_t position, std::span<const uint32_t> tokens) {
  uint32_t* at = device_step_.history + size_t{slot} * resident_.device.history_stride + position;
  return driver_->upload(reinterpret_cast<unsigned char*>(at), tokens.data(), tokens.size_bytes());
}

Status ResidentDevice::read_arena(uint64_t offset, std::span<std::byte> to) {
  return driver_->download(to.data(), resident_.device.arena + offset, to.size());
}

}  // namespace plow
