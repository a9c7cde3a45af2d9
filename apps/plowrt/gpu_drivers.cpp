#include "plowrt/gpu_drivers.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <filesystem>

namespace plow {

namespace {

class Library {
 public:
  explicit Library(const char* name) : handle_(::dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}
  ~Library() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  bool loaded() const { return handle_ != nullptr; }

  // Null when the library has no such symbol.
  template <class Function>
  Function* find(const char* symbol) const {
    return reinterpret_cast<Function*>(::dlsym(handle_, symbol));
  }

 private:
  void* handle_;
};

}  // namespace

// Signatures and meaning: the CUDA driver API reference, sections "Initialization", "Version Management",
// "Device Management".
std::string describe_cuda_driver() {
  const Library cuda("libcuda.so.1");
  if (!cuda.loaded()) return "no driver (libcuda.so.1 is not installed)";
  auto* init = cuda.find<int(unsigned)>("cuInit");
  auto* version = cuda.find<int(int*)>("cuDriverGetVersion");
  auto* count_devices = cuda.find<int(int*)>("cuDeviceGetCount");
  auto* device_name = cuda.find<int(char*, int, int)>("cuDeviceGetName");
  if (init == nullptr || version == nullptr || count_devices == nullptr || device_name == nullptr) {
    return "libcuda.so.1 lacks functions of the driver API";
  }
  if (const int error = init(0); error != 0) {
    return fmt::format("libcuda.so.1 is there, but cuInit says {}{}", error,
                       std::filesystem::exists("/dev/nvidiactl") ? "" : " (no /dev/nvidiactl)");
  }
  int number = 0, devices = 0;
  version(&number);
  count_devices(&devices);
  std::string text =
      fmt::format("driver for CUDA {}.{}, {} device(s)", number / 1000, number % 1000 / 10, devices);
  for (int device = 0; device < devices; ++device) {
    std::array<char, 256> name{};
    if (device_name(name.data(), static_cast<int>(name.size()) - 1, device) == 0)
      text += fmt::format(", {}", name.data());
  }
  return text + "; this build has no interpreter for them";
}

// hsa_init is in the HSA runtime specification 1.2, section 2.1.
std::string describe_hsa_runtime() {
  const Library hsa("libhsa-runtime64.so.1");
  if (!hsa.loaded()) return "no runtime (libhsa-runtime64.so.1 is not installed)";
  auto* init = hsa.find<int()>("hsa_init");
  auto* shut_down = hsa.find<int()>("hsa_shut_down");
  if (init == nullptr || shut_down == nullptr)
    return "libhsa-runtime64.so.1 lacks functions of the HSA runtime";
  if (const int error = init(); error != 0) {
    return fmt::format("libhsa-runtime64.so.1 is there, but hsa_init says {:#x}{}", error,
                       std::filesystem::exists("/dev/kfd") ? "" : " (no /dev/kfd)");
  }
  shut_down();
  return "HSA runtime; this build has no interpreter for its devices";
}

}  // namespace plow
