// An emulated GPU behind gpu_driver.h, for tests: its memory is the process's, its resident kernel a thread
// of fibers.
#pragma once

#include "interp/testing/emulated_team.h"
#include "isa/emulated/bodies.h"
#include "ops/play_tape.h"
#include "runtime/gpu_driver.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace plow::emulated {

struct EmulatedOptions {
  uint32_t n_workers = 2;
  uint32_t waves = 2;
  uint64_t seed = 1;  // of the order in which threads run
  Isa isa = Isa::kSm90a;
  uint64_t* device_bytes = nullptr;  // counts what is allocated on the device
};

// Of teams of type Team, of interp/testing/emulated_team.h.
template <class Team>
class EmulatedDriver final : public GpuDriver {
 public:
  explicit EmulatedDriver(const EmulatedOptions& options) : options_(options) {
    facts_ = {"an emulated GPU", options.isa, options.n_workers, uint64_t{1} << 32, uint64_t{1} << 32};
  }
  ~EmulatedDriver() override {
    if (kernel_.joinable()) kernel_.join();
  }

  const GpuFacts& facts() const override { return facts_; }
  Result<unsigned char*> allocate(uint64_t bytes, const char* what) override {
    if (options_.device_bytes != nullptr) *options_.device_bytes += bytes;
    return allocate_host(bytes, what);
  }
  Result<unsigned char*> allocate_host(uint64_t bytes, const char*) override {
    memory_.push_back(std::make_unique<Block[]>(bytes / sizeof(Block) + 1));
    return memory_.back()[0].bytes;
  }
  Status upload(unsigned char* to, const void* from, uint64_t bytes) override {
    std::memcpy(to, from, bytes);
    return {};
  }
  Status download(void* to, const unsigned char* from, uint64_t bytes) override {
    std::memcpy(to, from, bytes);
    return {};
  }
  Status zero(unsigned char* to, uint64_t bytes) override {
    std::memset(to, 0, bytes);
    return {};
  }
  Status fill_random(unsigned char*, uint64_t, DType, float, uint64_t) override {
    return device_error("an emulated GPU fills nothing");
  }
  Result<double> read_bandwidth(const unsigned char*, uint64_t) override {
    return device_error("an emulated GPU has no bandwidth");
  }
  Status launch(const Resident* resident) override {
    if (kernel_.joinable()) kernel_.join();
    running_ = true;
    kernel_ = std::thread([this, resident] {
      uint32_t waves = options_.waves, tape_threads = 0;
      if constexpr (dev::HasWarpUnit<Team>) waves = Team::kWaves;
      if constexpr (dev::HasTape<Team>) tape_threads = Team::kLanes;
      EmulatedGpu gpu(options_.n_workers, waves * Team::kLanes, tape_threads, Team::kLanes, kSharedBytes,
                      options_.seed++);
      gpu.run([&](uint32_t worker, unsigned char* shared) { work(*resident, worker, shared); });
      running_ = false;
    });
    return {};
  }
  // The host looks here now and then while a step runs. Fibers take milliseconds for one, and a host that
  // spins takes a processor from other tests.
  Result<bool> running() override {
    if (running_.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return running_.load();
  }

 private:
  // Of a team, and of all with a tape.
  static constexpr uint64_t kTeamBytes = 122880, kSharedBytes = 262144;

  // One thread, from launch to end.
  static void work(const Resident& resident, uint32_t worker, unsigned char* shared) {
    if constexpr (dev::HasTape<Team>) {
      EmulatedGpu& gpu = *EmulatedGpu::current_gpu();
      unsigned char* slots = shared + kTeamBytes;
      auto& ring = *reinterpret_cast<dev::RingOf<Team>*>(slots + Team::kTapeSlots * dev::kPieceBytes);
      if (Team::thread() == 0) {
        ring = {};
        dev::make_ring<Team>(ring);
      }
      gpu.meet(gpu.team().everyone);
      if (Team::thread() >= Team::n_threads()) return dev::play_tape<Team>(resident, worker, ring, slots);
      return dev::serve<Team, Bodies>(resident, worker, shared, {&ring, slots});
    } else {
      dev::serve<Team, Bodies>(resident, worker, shared);
    }
  }

  struct alignas(256) Block {
    unsigned char bytes[256] = {};
  };
  EmulatedOptions options_;
  GpuFacts facts_;
  std::vector<std::unique_ptr<Block[]>> memory_;
  std::thread kernel_;
  std::atomic<bool> running_{false};
};

}  // namespace plow::emulated
