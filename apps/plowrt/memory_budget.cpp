#include "plowrt/memory_budget.h"

#include "console/host.h"
#include "runtime/cuda/cuda_driver.h"
#include "runtime/hsa/hsa_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace plow {
namespace {

// The rest is for what is allocated beside the plan: the driver's own, pages of files, the server's requests.
constexpr uint64_t share_of(uint64_t bytes) { return bytes / 10 * 9; }

// N of "cuda:N" or "hsa:N", which the engine checks; 0 when there is none.
uint32_t ordinal_of(const std::string& device) {
  uint32_t ordinal = 0;
  const size_t colon = device.find(':');
  if (colon != std::string::npos)
    std::from_chars(device.data() + colon + 1, device.data() + device.size(), ordinal);
  return ordinal;
}

}  // namespace

Result<uint64_t> free_budget(std::span<const Isa> isas, const std::string& device) {
  const auto vendor = [](Isa isa) { return std::string_view(isa_vendor(isa)); };
  const auto other = std::ranges::find_if(isas, [&](Isa isa) { return vendor(isa) != vendor(isas[0]); });
  if (other != isas.end()) {
    return usage_error(fmt::format("the bundles are for {} and {}, whose memory is not one. Give --memory.",
                                   isa_name(isas[0]), isa_name(*other)));
  }
  if (isas[0] == Isa::kX86_64) return share_of(read_host_facts().memory_available);
  PLOW_TRY(const auto driver,
           vendor(isas[0]) == "amd" ? open_hsa(ordinal_of(device)) : open_cuda(ordinal_of(device)));
  return share_of(driver->facts().memory_free);
}

}  // namespace plow
