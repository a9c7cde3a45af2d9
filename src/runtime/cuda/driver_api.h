// The functions of the CUDA driver that plow calls, found with dlopen: nothing is linked. Signatures: CUDA
// driver API reference (13.0).
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace plow::cuda {

using Code = int;  // CUresult
using DevicePointer = unsigned long long;
struct ContextTag;
struct StreamTag;
struct ModuleTag;
struct FunctionTag;
using Context = ContextTag*;
using Stream = StreamTag*;
using Module = ModuleTag*;
using Function = FunctionTag*;

constexpr Code kSuccess = 0, kOutOfMemory = 2, kNotReady = 600;
// CUdevice_attribute
constexpr int kMultiprocessorCount = 16, kComputeMajor = 75, kComputeMinor = 76, kCooperativeLaunch = 95;
constexpr int kMaxDynamicSharedBytes = 8;    // CUfunction_attribute
constexpr unsigned kHostPortableMapped = 3;  // CU_MEMHOSTALLOC_PORTABLE | _DEVICEMAP
constexpr unsigned kStreamNonBlocking = 1;

struct Api {
#define PLOW_CUDA(member, symbol, ...) Code (*member)(__VA_ARGS__) = nullptr;
#include "runtime/cuda/driver_api.def"
};

// Loads libcuda.so.1 and initialises it, once a process. Errors (kDevice): says whether the library is
// missing, lacks a function or refuses.
Result<const Api*> load_api();

// The driver's name for a code.
std::string code_name(const Api& api, Code code);

struct DeviceFacts {
  std::string name;
  int multiprocessors = 0, major = 0, minor = 0;
  uint64_t memory_total = 0;
};
Result<std::vector<DeviceFacts>> list_devices(const Api& api);
Result<int> driver_version(const Api& api);  // 13000 for CUDA 13.0

}  // namespace plow::cuda
