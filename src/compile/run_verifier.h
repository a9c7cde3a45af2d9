// plow_verify, asked about a bundle that is being written.
#pragma once

#include "base/error.h"

#include <filesystem>
#include <functional>
#include <string>

namespace plow {

// Errors (kInput): there is no program of that path that may be run.
Status check_verifier(const std::filesystem::path& program);

// Runs PROGRAM MODEL_PKT --receipt and returns the receipt that it prints, of an acceptance or of a refusal.
// `cancelled` is asked ten times a second and ends the program. Errors: kVerification when it breaks off,
// kInput when it cannot be run or was cancelled.
Result<std::string> run_verifier(const std::filesystem::path& program, const std::filesystem::path& model_pkt,
                                 const std::function<bool()>& cancelled);

}  // namespace plow
