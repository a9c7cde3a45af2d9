#include "plowrt/gpu_drivers.h"

#include "base/text_table.h"
#include "isa/gpu/object.h"
#include "runtime/cuda/cuda_driver.h"
#include "runtime/cuda/driver_api.h"
#include "runtime/hsa/hsa_driver.h"

#include <fmt/format.h>

namespace plow {

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

std::string describe_hsa_runtime() {
  const auto api = hsa::load_api();
  if (!api.ok()) return api.error().message;
  const auto devices = hsa::list_devices(**api);
  if (!devices.ok()) return devices.error().message;
  std::string text = fmt::format("HSA runtime, {} device(s)", devices->size());
  for (size_t i = 0; i < devices->size(); ++i) {
    const hsa::DeviceFacts& device = (*devices)[i];
    const auto isa = isa_of_amd_name(device.isa);
    const bool built = isa && !gpu::interpreter_object(*isa).empty();
    text += fmt::format(
        "; hsa:{} is {}, {} compute units, {}", i, device.name, device.compute_units,
        built ? fmt::format("runs bundles of {}", device.isa)
        : isa ? fmt::format("would run {}, but this program was built without clang for it", device.isa)
              : fmt::format("{}, which plow has no interpreter for", device.isa));
  }
  return text;
}

}  // namespace plow
