// Options from a file in TOML, below variables and flags.
#pragma once

#include "base/error.h"

#include <CLI/CLI.hpp>

#include <span>
#include <string>

namespace plow {

// Gives every command of `app` that does something an option --config. To be called before finish_options().
void add_config_option(CLI::App& app);

// Reads the file that --config or PLOW_CONFIG names, when one of them is there, and sets the environment
// variables of the options for which none is set. To be called after finish_options() and before parsing.
//
// A key is an option's long name; at the top of the file it stands for every command that has it, in a table
// named for a command ([serve], [bench.decode]) for that command, and wins there. Values are texts, numbers,
// booleans, and arrays of them. Errors (kInput): a file that cannot be read or is no TOML; (kUsage) a key
// that no option has, with its line.
Status read_config(const CLI::App& app, std::span<char* const> arguments);

}  // namespace plow
