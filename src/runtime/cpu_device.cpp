#include "runtime/cpu_device.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace plow {
namespace {

// Weights up to half of the machine's memory are copied: the other half is for the cache and for the file
// they come from.
bool copies_weights(uint64_t bytes) {
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)),
             page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes <= pages * page / 2;
}

}  // namespace

// A step goes through all weights, so they lie in huge pages: those of a mapped file are as large as the
// kernel happened to read it, and a step of 4 rows took a sixth longer for that
// (perf/2026-11-30-rewriting-on-the-cpu.md).
Status CpuDevice::place_weights(std::span<const std::byte> tape) {
  device_.tape = reinterpret_cast<const unsigned char*>(tape.data());
  if (tape.empty() || !copies_weights(tape.size())) return {};
  PLOW_TRY(weights_, DeviceMemory::allocate(tape.size(), "the weights"));
  std::memcpy(weights_.data(), tape.data(), tape.size());
  device_.tape = weights_.data();
  return {};
}

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
  PLOW_TRY_STATUS(cpu->place_weights(plan.tape));
  for (const ProgramView& program : plan.bundle->programs()) cpu->programs_.push_back(table_of(program));
  Device& device = cpu->device_;
  device.programs = cpu->programs_.data();
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

Status CpuDevice::read_arena(uint64_t offset, std::span<std::byte> to) {
  std::memcpy(to.data(), arena_.data() + offset, to.size());
  return {};
}

}  // namespace plow
