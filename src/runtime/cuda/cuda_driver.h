// An NVIDIA GPU behind gpu_driver.h.
#pragma once

#include "runtime/gpu_driver.h"

#include <memory>
#include <optional>

namespace plow {

// Device `ordinal` of the CUDA driver with the interpreter object that this program has for it. Errors
// (kDevice): no driver, no such device, a device that no object was built for, or an object that does not fit
// this program.
Result<std::unique_ptr<GpuDriver>> open_cuda(uint32_t ordinal);

// The ISA whose objects a device of this compute capability runs; nothing when there is none.
std::optional<Isa> isa_of_compute_capability(int major, int minor);

}  // namespace plow
