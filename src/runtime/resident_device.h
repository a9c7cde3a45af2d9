// A GPU as a device: everything lies in its memory, one kernel stays on it, and a step is a call through the
// mailbox.
#pragma once

#include "runtime/gpu_driver.h"
#include "runtime/step_device.h"

#include <memory>
#include <vector>

namespace plow {

class ResidentDevice final : public StepDevice {
 public:
  // Errors: kDevice when the bundle was scheduled for another instruction set or number of workers than the
  // GPU has (both are said); kDoesNotFit; the driver's.
  static Result<std::unique_ptr<ResidentDevice>> create(const DevicePlan& plan,
                                                        std::unique_ptr<GpuDriver> driver);
  ~ResidentDevice() override;

  Result<std::optional<Fault>> run(StepDescriptor& step) override;
  Status write_history(uint32_t slot, uint32_t position, std::span<const uint32_t> tokens) override;
  Status read_arena(uint64_t offset, std::span<std::byte> to) override;
  Result<std::vector<std::vector<PacketTimes>>> read_times(uint32_t program) override;
  std::string name() const override { return driver_->facts().name; }
  Result<double> read_bandwidth() override;

  uint64_t launches() const { return launches_; }  // of the kernel so far

 private:
  Status allocate(const DevicePlan& plan);
  Status upload_tape(std::span<const std::byte> tape);
  Status make_random_tape();
  Status upload_programs(const DevicePlan& plan);
  Status make_step_arrays(const DevicePlan& plan);
  Status make_host_arrays(const DevicePlan& plan);
  Status start();
  Status stop();
  void fill_mailbox(const StepDescriptor& step);

  std::unique_ptr<GpuDriver> driver_;
  const BundleFile* bundle_ = nullptr;
  Resident resident_{};                   // as it is uploaded
  unsigned char* resident_at_ = nullptr;  // on the device
  StepDescriptor device_step_{};          // whose arrays are the device's
  unsigned char* step_at_ = nullptr;
  unsigned char* words_at_ = nullptr;  // Control, go, back
  uint64_t counter_bytes_ = 0;
  Mailbox* mailbox_ = nullptr;  // in host memory, as are the arrays that its step points to
  std::vector<const uint32_t*> host_tables_;
  uint32_t* masks_ = nullptr;  // [max samples][mask_words_], in host memory: of the samples that have one
  uint32_t mask_words_ = 0;
  TokenBias* biases_ = nullptr;  // [max samples][kMaxBias], likewise
  Sampled* tops_ = nullptr;      // [max samples][kMaxSteps * kMaxTop], likewise; the device writes there
  uint32_t epoch_ = 0;
  bool launched_ = false;
  uint64_t launches_ = 0;
};

}  // namespace plow
