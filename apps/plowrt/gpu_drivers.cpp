#include "plowrt/gpu_drivers.h"

#include "base/text_table.h"
#include "isa/gpu/object.h"
#include "runtime/cuda/cuda_driver.h"
#include "runtime/cuda/driver_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

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

std::string describe_cuda_driver() {
  const auto api = cuda::load_api();
  if (!api.ok()) return api.error().message;
  const auto version = cuda::driver_version(**api);
  const auto devices = cuda::list_devices(**api);
  if (!version.ok()) return version.error().message;
  if (!devices.ok()) return devices.error().message;
  std::string text = fmt::format("driver for CUDA {}.{}, {} device(s)", *version / 1000, *version % 1000 / 10,
                                 devices->size());
  for (size_t i = 0; i < devices->size(); ++i) {
    const cuda::DeviceFacts& device = (*devices)[i];
    const auto isa = isa_of_compute_capability(device.major, device.minor);
    const bool built = isa && !gpu::interpreter_object(*isa).empty();
    text += fmt::format(
        "; cuda:{} is {}, {} multiprocessors, {}, {}", i, device.name, device.multiprocessors,
        format_bytes(static_cast<double>(device.memory_total)),
        built ? fmt::format("runs bundles of {}", isa_name(*isa))
        : isa ? fmt::format("would run {}, but this program was built without nvcc", isa_name(*isa))
              : fmt::format("compute capability {}.{}, which plow has no interpreter for", device.major,
                            device.minor));
  }
  return text;
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
