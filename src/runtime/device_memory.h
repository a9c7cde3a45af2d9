// Memory of a device that is this machine: zeroed pages, aligned to 2 MiB and backed by huge pages where the
// kernel grants them.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>

namespace plow {

class DeviceMemory {
 public:
  // Errors (kDoesNotFit): the address space or the machine has no room. `what` names the memory in the
  // message.
  static Result<DeviceMemory> allocate(uint64_t bytes, const char* what);

  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory();

  unsigned char* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  void* mapping_ = nullptr;
  size_t mapped_bytes_ = 0;
  unsigned char* data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace plow
