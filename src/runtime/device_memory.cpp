#include "runtime/device_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace plow {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;  // of x86-64; other sizes are multiples of it

}  // namespace

Result<DeviceMemory> DeviceMemory::allocate(uint64_t bytes, const char* what) {
  DeviceMemory memory;
  if (bytes == 0) return memory;
  if (bytes > SIZE_MAX - 2 * kHugePageBytes)
    return does_not_fit(fmt::format("{} of {} bytes does not fit an address space.", what, bytes));
  const size_t rounded = (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  const size_t mapped = rounded + kHugePageBytes;  // for the alignment
  void* mapping =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return does_not_fit(
        fmt::format("No memory for {} ({} bytes): {}. Ask for fewer slots or a shorter context.", what, bytes,
                    std::strerror(errno)));
  }
  const uintptr_t address =
      (reinterpret_cast<uintptr_t>(mapping) + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  memory.mapping_ = mapping;
  memory.mapped_bytes_ = mapped;
  memory.data_ = reinterpret_cast<unsigned char*>(address);
  memory.bytes_ = bytes;
  // Advice: a kernel without huge pages refuses it, and nothing else changes.
  (void)madvise(memory.data_, rounded, MADV_HUGEPAGE);
  return memory;
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
}

}  // namespace plow
