// plowrt plan and plowrt disasm: what a bundle needs and what is in it, without running it.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace plow {

// The exact device memory with `slots` sequences of `context` positions; unset: as the bundle was compiled
// for.
Status plan_command(const std::filesystem::path& bundle, std::optional<uint32_t> slots,
                    std::optional<uint32_t> context);

// Packets as text: of all programs and workers, or of those that are given.
Status disasm_command(const std::filesystem::path& bundle, std::optional<uint32_t> program,
                      std::optional<uint32_t> worker);

}  // namespace plow
