// Completion of commands and options for shells, made of the very options that the program parses.
#pragma once

#include "base/error.h"

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>

namespace plow {

// A script for `shell`. Errors (kUsage): it is none of bash, zsh and fish.
Result<std::string> completion_script(const CLI::App& app, std::string_view shell);

}  // namespace plow
