// What the runtime needs of one GPU: memory, copies, and one kernel that stays. Behind it is a vendor's
// driver, found at run time; tests put an emulated GPU there.
#pragma once

#include "base/error.h"
#include "interp/resident.h"

#include <cstdint>
#include <functional>
#include <string>

namespace plow {

struct GpuFacts {
  std::string name;
  Isa isa;             // whose code it runs
  uint32_t n_workers;  // blocks that are resident at once, one a multiprocessor
  uint64_t memory_total = 0, memory_free = 0;
};

class GpuDriver {
 public:
  virtual ~GpuDriver() = default;  // frees all memory; REQUIRES that no kernel runs

  virtual const GpuFacts& facts() const = 0;

  // Memory of the device, zeroed, at least 256-byte aligned; freed with the driver. Errors (kDoesNotFit):
  // `what` names it.
  virtual Result<unsigned char*> allocate(uint64_t bytes, const char* what) = 0;
  // Memory of the host, zeroed, that the device sees at the same address.
  virtual Result<unsigned char*> allocate_host(uint64_t bytes, const char* what) = 0;

  // Return when the copy is done. A kernel may run meanwhile.
  virtual Status upload(unsigned char* to, const void* from, uint64_t bytes) = 0;
  virtual Status download(void* to, const unsigned char* from, uint64_t bytes) = 0;
  virtual Status zero(unsigned char* to, uint64_t bytes) = 0;

  // `n` values of bf16 or f32, uniform in (-bound, bound), from a seed: weights to measure with. REQUIRES
  // that no kernel runs.
  virtual Status fill_random(unsigned char* to, uint64_t n, DType dtype, float bound, uint64_t seed) = 0;
  // Bytes a second at which all multiprocessors read `bytes` bytes of memory, median of several. REQUIRES
  // that no kernel runs.
  virtual Result<double> read_bandwidth(const unsigned char* from, uint64_t bytes) = 0;

  // Starts the resident kernel with facts().n_workers workers. REQUIRES that none runs. `resident` is device
  // memory.
  virtual Status launch(const Resident* resident) = 0;
  // Whether the kernel has not ended. Errors (kDevice): it died, and the device's memory with it.
  virtual Result<bool> running() = 0;
};

// What read_bandwidth() of a driver gives: bytes a second of `read`, which reads `bytes` bytes and returns
// when that is done. Median of several, after one that warms up. Errors: those of `read`.
Result<double> median_read_rate(uint64_t bytes, const std::function<Status()>& read);

}  // namespace plow
