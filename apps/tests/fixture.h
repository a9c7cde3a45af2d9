// Checkpoints and bundles, whole and broken, for the tests of the programs. Made once, in a folder of its
// own.
#pragma once

#include "tests/run_program.h"

#include <filesystem>
#include <string>
#include <vector>

namespace plow {

// The folder with everything below; removed when the process ends.
//   tiny, tiny.plow          a checkpoint and its bundle (one worker, context 128, 2 slots)
//   no-chat, no-chat.plow    the same without a chat template
//   checkpoints and bundles that are broken, each named for what is wrong with it
const std::filesystem::path& fixture_folder();

// "plowc" and "plowrt" at the start of `command` stand for the programs, DIR for the fixture's folder. No
// shell: words are separated by spaces, and a word between single quotes may have some.
ProgramRun parse_command(const std::string& command);

// DIR for the fixture's folder, DIGEST and N for what depends on the very bytes of a bundle, so that texts
// are the same everywhere.
std::string normalised(std::string text);

}  // namespace plow
