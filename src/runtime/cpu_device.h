// This machine's processors as a device: memory of the process, a thread a worker.
#pragma once

#include "runtime/device_memory.h"
#include "runtime/step_device.h"
#include "runtime/worker_threads.h"

#include <memory>
#include <vector>

namespace plow {

class CpuDevice final : public StepDevice {
 public:
  // Errors: as DeviceMemory::allocate and WorkerThreads::start.
  static Result<std::unique_ptr<CpuDevice>> create(const DevicePlan& plan, IsaLevel level, bool pin);

  Result<std::optional<Fault>> run(StepDescriptor& step) override;
  Status read_arena(uint64_t offset, std::span<std::byte> to) override;
  Result<std::vector<std::vector<PacketTimes>>> read_times(uint32_t program) override;
  std::string name() const override { return "cpu"; }

 private:
  Status allocate(const DevicePlan& plan);
  void restart();

  std::vector<ProgramTable> programs_;
  DeviceMemory arena_, counters_, scratch_;
  uint64_t scratch_stride_ = 0;
  std::vector<DeviceMemory> pools_;  // by KV group
  std::vector<PacketTimes> times_;
  std::vector<unsigned char*> pool_pointers_;
  StepDescriptor step_{};
  Control control_{};
  Device device_;
  uint32_t epoch_ = 0;                      // of the last step
  std::unique_ptr<WorkerThreads> workers_;  // last: its threads use all of the above
};

}  // namespace plow
