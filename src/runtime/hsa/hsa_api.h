// The functions of the HSA runtime that plow calls, found with dlopen: nothing is linked. Signatures and
// numbers: HSA Runtime Programmer's Reference Manual 1.2 and AMD's extensions to it (hsa.h, hsa_ext_amd.h).
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace plow::hsa {

using Code = uint32_t;  // hsa_status_t
// Handles, opaque.
struct Agent {
  uint64_t handle;
};
struct Signal {
  uint64_t handle;
};
struct Pool {
  uint64_t handle;
};
struct Reader {
  uint64_t handle;
};
struct Executable {
  uint64_t handle;
};
struct Symbol {
  uint64_t handle;
};

// hsa_queue_t
struct Queue {
  uint32_t type, features;
  void* base;
  Signal doorbell;
  uint32_t size;  // in packets, a power of two
  uint32_t reserved;
  uint64_t id;
};

// hsa_kernel_dispatch_packet_t
struct DispatchPacket {
  uint16_t header, setup;
  uint16_t group_x, group_y, group_z;  // in work items
  uint16_t reserved0;
  uint32_t grid_x, grid_y, grid_z;  // in work items
  uint32_t private_bytes, group_bytes;
  uint64_t kernel_object;
  void* kernarg;
  uint64_t reserved2;
  Signal completion;
};
static_assert(sizeof(DispatchPacket) == 64);

constexpr Code kSuccess = 0, kOutOfResources = 0x1008;
// hsa_agent_info_t and its extension
constexpr uint32_t kAgentName = 0, kAgentDevice = 17, kAgentComputeUnits = 0xa002, kAgentProductName = 0xa009;
constexpr uint32_t kDeviceCpu = 0, kDeviceGpu = 1;
// hsa_amd_memory_pool_info_t
constexpr uint32_t kPoolSegment = 0, kPoolFlags = 1, kPoolSize = 2, kPoolMayAllocate = 5;
constexpr uint32_t kSegmentGlobal = 0, kFlagKernarg = 1, kFlagFineGrained = 2, kFlagCoarseGrained = 4;
// hsa_executable_symbol_info_t
constexpr uint32_t kSymbolKernelObject = 22, kSymbolKernargBytes = 11, kSymbolGroupBytes = 13,
                   kSymbolPrivateBytes = 14;
constexpr uint32_t kQueueSingle = 1, kProfileBase = 0, kRoundingDefault = 0;
constexpr uint32_t kConditionLess = 2, kWaitBlocked = 0;
// A dispatch that waits for the one before it, and acquires and releases at the scope of the system.
constexpr uint16_t kDispatchHeader = 2 | 1 << 8 | 2 << 9 | 2 << 11;

struct Api {
#define PLOW_HSA(type, member, symbol, ...) type (*member)(__VA_ARGS__) = nullptr;
#include "runtime/hsa/hsa_api.def"
};

// Loads libhsa-runtime64.so.1 and initialises it, once a process. Errors (kDevice): says whether the library
// is missing, lacks a function or refuses.
Result<const Api*> load_api();

// The runtime's text for a code.
std::string code_text(const Api& api, Code code);

struct DeviceFacts {
  Agent agent;
  std::string name;  // AMD Instinct MI300X
  std::string isa;   // gfx942
  uint32_t compute_units = 0;
};
// The GPUs, in the runtime's order.
Result<std::vector<DeviceFacts>> list_devices(const Api& api);
// The agent of the host's processor.
Result<Agent> host_agent(const Api& api);

}  // namespace plow::hsa
