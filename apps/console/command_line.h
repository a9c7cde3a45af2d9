// What both programs do alike with a command line: environment variables, errors, exit codes.
#pragma once

#include "base/error.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <string>

namespace plow {

// To be called when all options are there. Gives every long option of `app` and of its subcommands the
// environment variable PLOW_<NAME>
// (--max-ctx reads PLOW_MAX_CTX; a flag on the command line wins), and help texts their form.
void finish_options(CLI::App& app);

// Parses and runs. `run` is called when the command line is right and gives the exit code. Returns that, the
// class of the error (base/error.h), or 128 + the number of the signal that stopped the work. Errors go to
// stderr as "PROGRAM: message".
int run_command_line(CLI::App& app, int argc, char** argv, const std::function<Result<int>()>& run);

}  // namespace plow
