#include "runtime/cuda/driver_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <filesystem>

namespace plow::cuda {
namespace {

Result<Api> find_functions() {
  // Never closed: a driver that was initialised does not survive that.
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return device_error("no NVIDIA driver (libcuda.so.1 is not installed)");
  Api api;
#define PLOW_CUDA(member, symbol, ...)                                             \
  api.member = reinterpret_cast<Code (*)(__VA_ARGS__)>(::dlsym(library, #symbol)); \
  if (api.member == nullptr) return device_error("libcuda.so.1 lacks " #symbol "; install a newer driver");
#include "runtime/cuda/driver_api.def"
  if (const Code code = api.init(0); code != kSuccess) {
    return device_error(fmt::format("libcuda.so.1 is there, but cuInit says {}{}", code_name(api, code),
                                    std::filesystem::exists("/dev/nvidiactl") ? "" : " (no /dev/nvidiactl)"));
  }
  return api;
}

}  // namespace

Result<const Api*> load_api() {
  static const Result<Api> api = find_functions();
  if (!api.ok()) return api.error();
  return &*api;
}

std::string code_name(const Api& api, Code code) {
  const char* name = nullptr;
  if (api.error_name(code, &name) == kSuccess && name != nullptr) return fmt::format("{} ({})", name, code);
  return std::to_string(code);
}

Result<std::vector<DeviceFacts>> list_devices(const Api& api) {
  int count = 0;
  if (const Code code = api.device_count(&count); code != kSuccess)
    return device_error("cuDeviceGetCount says " + code_name(api, code));
  std::vector<DeviceFacts> devices(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    DeviceFacts& device = devices[static_cast<size_t>(i)];
    std::array<char, 256> name{};
    size_t bytes = 0;
    const bool known = api.device_name(name.data(), static_cast<int>(name.size()) - 1, i) == kSuccess &&
                       api.device_attribute(&device.multiprocessors, kMultiprocessorCount, i) == kSuccess &&
                       api.device_attribute(&device.major, kComputeMajor, i) == kSuccess &&
                       api.device_attribute(&device.minor, kComputeMinor, i) == kSuccess &&
                       api.device_memory(&bytes, i) == kSuccess;
    if (!known) return device_error(fmt::format("the NVIDIA driver does not describe its device {}", i));
    device.name = name.data();
    device.memory_total = bytes;
  }
  return devices;
}

Result<int> driver_version(const Api& api) {
  int version = 0;
  if (const Code code = api.driver_version(&version); code != kSuccess)
    return device_error("cuDriverGetVersion says " + code_name(api, code));
  return version;
}

}  // namespace plow::cuda
