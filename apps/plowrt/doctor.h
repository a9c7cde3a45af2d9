// plowrt doctor: what this machine has, what of it plow can use, and whether a bundle would run here.
#pragma once

#include "base/error.h"

#include <filesystem>

namespace plow {

// `bundle` may be empty. Errors: those of opening the bundle; kDoesNotFit or kInput when it cannot run here.
Status doctor_command(const std::filesystem::path& bundle);

}  // namespace plow
