#include "runtime/cpu_device.h"

#include <algorithm>
#include <cstring>

namespace plow {

Status CpuDevice::allocate(const DevicePlan& plan) {
  const BundleFile& bundle = *plan.bundle;
  const MemoryPlan memory = plan_memory(bundle, plan.slots, plan.context);
  scratch_stride_ = (uint64_t{bundle.header().scratch_bytes} + kCounterLineBytes - 1) / kCounterLineBytes *
                    kCounterLineBytes;
  PLOW_TRY(arena_, DeviceMemory::allocate(memory.arena, "activations"));
  PLOW_TRY(counters_, DeviceMemory::allocate(memory.counters, "counters"));
  PLOW_TRY(scratch_, DeviceMemory::allocate(scratch_stride_ * bundle.header().n_workers, "scratch"));
  for (size_t g = 0; g < plan.kv_blocks.size(); ++g) {
    const uint64_t bytes = plan.kv_blocks[g] * bundle.kv_groups()[g].block_bytes;
    PLOW_TRY(DeviceMemory pool, DeviceMemory::allocate(bytes, "the KV cache"));
    pool_pointers_.push_back(pool.data());
    pools_.push_back(std::move(pool));
  }
  return {};
}

Result<std::unique_ptr<CpuDevice>> CpuDevice::create(const DevicePlan& plan, IsaLevel level, bool pin) {
  auto cpu = std::make_unique<CpuDevice>();
  PLOW_TRY_STATUS(cpu->allocate(plan));
  for (const ProgramView& program : plan.bundle->programs()) cpu->programs_.push_back(table_of(program));
  Device& device = cpu->device_;
  device.programs = cpu->programs_.data();
  device.tape = reinterpret_cast<const unsigned char*>(plan.tape.data());
  device.arena = cpu->arena_.data();
  device.kv_pools = cpu->pool_pointers_.data();
  device.kv_groups = plan.bundle->kv_groups().data();
  device.counters = cpu->counters_.data();
  for (const ProgramTable& program : cpu->programs_)
    device.bank_lines = std::max(device.bank_lines, program.n_counters);
  device.n_workers = plan.bundle->header().n_workers;
  device.history_stride = plan.context;
  device.deadline_ns = static_cast<uint64_t>(plan.deadline.count());
  device.step = &cpu->step_;
  device.control = &cpu->control_;
  if (plan.trace) {
    device.times_stride = longest_list(*plan.bundle);
    cpu->times_.resize(size_t{device.times_stride} * device.n_workers);
    device.times = cpu->times_.data();
  }
  PLOW_TRY(cpu->workers_, WorkerThreads::start(x86_64_interpreter(level), device, cpu->scratch_.data(),
                                               cpu->scratch_stride_, pin));
  return cpu;
}

void CpuDevice::restart() {
  std::memset(counters_.data(), 0, counters_.bytes());
  control_.abort = 0;
  control_.done = 0;
  epoch_ = 0;
}

Result<std::optional<Fault>> CpuDevice::run(StepDescriptor& step) {
  if (epoch_ >= kLastEpoch) restart();
  step.epoch = epoch_ + 1;
  step.step = 0;
  step_ = step;
  workers_->run();
  if (control_.abort == 0) {
    epoch_ += step.n_steps;
    return std::optional<Fault>();
  }
  const Fault fault = control_.fault;
  restart();
  return std::optional(fault);
}

Result<std::vector<std::vector<PacketTimes>>> CpuDevice::read_times(uint32_t program) {
  if (times_.empty()) return usage_error("The engine was made without a trace.");
  std::vector<std::vector<PacketTimes>> times;
  for (uint32_t w = 0; w < device_.n_workers; ++w) {
    const PacketTimes* first = times_.data() + size_t{w} * device_.times_stride;
    times.emplace_back(first, first + device_.programs[program].workers[w].n_packets);
  }
  return times;
}

Status CpuDevice::read_arena(uint64_t offset, std::span<std::byte> to) {
  std::memcpy(to.data(), arena_.data() + offset, to.size());
  return {};
}

}  // namespace plow
