// An AMD GPU behind gpu_driver.h.
#pragma once

#include "runtime/gpu_driver.h"
#include "runtime/hsa/hsa_api.h"

#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace plow {

// Device `ordinal` of the HSA runtime with the interpreter object that this program has for it. Errors
// (kDevice): no runtime, no such device, a device that no object was built for, or an object that does not
// fit this program.
Result<std::unique_ptr<GpuDriver>> open_hsa(uint32_t ordinal);

// The same by a given runtime, with a given object, which is not checked. REQUIRES that `api` outlives the
// driver.
Result<std::unique_ptr<GpuDriver>> open_hsa_device(const hsa::Api& api, const hsa::DeviceFacts& device,
                                                   Isa isa, std::span<const std::byte> object);

// The ISA of AMD's name for it ("gfx942"); nothing when plow has no interpreter for it.
std::optional<Isa> isa_of_amd_name(std::string_view name);

}  // namespace plow
