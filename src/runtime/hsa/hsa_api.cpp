#include "runtime/hsa/hsa_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <filesystem>

namespace plow::hsa {
namespace {

Result<Api> find_functions() {
  // Never closed: a runtime that was initialised has threads of its own.
  void* library = ::dlopen("libhsa-runtime64.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return device_error("no AMD runtime (libhsa-runtime64.so.1 is not installed)");
  Api api;
#define PLOW_HSA(type, member, symbol, ...)                                        \
  api.member = reinterpret_cast<type (*)(__VA_ARGS__)>(::dlsym(library, #symbol)); \
  if (api.member == nullptr)                                                       \
    return device_error("libhsa-runtime64.so.1 lacks " #symbol "; install a newer one");
#include "runtime/hsa/hsa_api.def"
  if (const Code code = api.init(); code != kSuccess) {
    return device_error(fmt::format("libhsa-runtime64.so.1 is there, but hsa_init says {}{}",
                                    code_text(api, code),
                                    std::filesystem::exists("/dev/kfd") ? "" : " (no /dev/kfd)"));
  }
  return api;
}

Result<std::vector<Agent>> list_agents(const Api& api) {
  std::vector<Agent> agents;
  const auto add = [](Agent agent, void* to) {
    static_cast<std::vector<Agent>*>(to)->push_back(agent);
    return kSuccess;
  };
  if (const Code code = api.iterate_agents(add, &agents); code != kSuccess)
    return device_error("hsa_iterate_agents says " + code_text(api, code));
  return agents;
}

Result<uint32_t> device_type(const Api& api, Agent agent) {
  uint32_t type = 0;
  if (const Code code = api.agent_info(agent, kAgentDevice, &type); code != kSuccess)
    return device_error("hsa_agent_get_info says " + code_text(api, code));
  return type;
}

}  // namespace

Result<const Api*> load_api() {
  static const Result<Api> api = find_functions();
  if (!api.ok()) return api.error();
  return &*api;
}

std::string code_text(const Api& api, Code code) {
  const char* text = nullptr;
  if (api.status_string(code, &text) == kSuccess && text != nullptr)
    return fmt::format("{:#x} ({})", code, text);
  return fmt::format("{:#x}", code);
}

Result<std::vector<DeviceFacts>> list_devices(const Api& api) {
  PLOW_TRY(const std::vector<Agent> agents, list_agents(api));
  std::vector<DeviceFacts> devices;
  for (const Agent agent : agents) {
    PLOW_TRY(const uint32_t type, device_type(api, agent));
    if (type != kDeviceGpu) continue;
    // Texts of at most 64 bytes with their end.
    std::array<char, 64> isa{}, name{};
    DeviceFacts device{agent, {}, {}, 0};
    const bool known = api.agent_info(agent, kAgentName, isa.data()) == kSuccess &&
                       api.agent_info(agent, kAgentProductName, name.data()) == kSuccess &&
                       api.agent_info(agent, kAgentComputeUnits, &device.compute_units) == kSuccess;
    if (!known)
      return device_error(fmt::format("the HSA runtime does not describe its device {}", devices.size()));
    isa.back() = name.back() = 0;
    device.isa = isa.data();
    device.name = name.data();
    devices.push_back(std::move(device));
  }
  return devices;
}

Result<Agent> host_agent(const Api& api) {
  PLOW_TRY(const std::vector<Agent> agents, list_agents(api));
  for (const Agent agent : agents) {
    PLOW_TRY(const uint32_t type, device_type(api, agent));
    if (type == kDeviceCpu) return agent;
  }
  return device_error("the HSA runtime knows no processor of the host");
}

}  // namespace plow::hsa
