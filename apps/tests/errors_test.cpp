// What bad input gets: for each command of errors.txt the exit code and the very message. Run with
// PLOW_BLESS=1 to write the file anew, and read the difference as you would read code.
#include "tests/fixture.h"
#include "tests/tiny_checkpoint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace plow {
namespace {

const std::string kGolden = std::string(PLOW_SOURCE_DIR) + "/apps/tests/golden/errors.txt";

struct Block {
  std::string command, outcome;
};

// Blocks of "$ command", then the outcome, between empty lines.
std::vector<Block> read_blocks(const std::string& text) {
  std::vector<Block> blocks;
  size_t at = text.find("$ ");
  while (at != std::string::npos) {
    const size_t end_of_line = text.find('\n', at);
    const size_t next = text.find("\n$ ", end_of_line);
    blocks.push_back(
        {text.substr(at + 2, end_of_line - at - 2),
         text.substr(end_of_line + 1, (next == std::string::npos ? text.size() : next) - end_of_line - 1)});
    at = next == std::string::npos ? next : next + 1;
  }
  return blocks;
}

std::string outcome(const std::string& command) {
  const ProgramResult result = run_program(parse_command(command));
  return fmt::format("exit {}\n{}", result.exit_code, normalised(result.err));
}

TEST(Errors, EveryBadCommandGetsItsMessageAndExitCode) {
  const std::vector<Block> blocks = read_blocks(read_file(kGolden));
  ASSERT_GE(blocks.size(), 50u);
  std::string blessed;
  for (const Block& block : blocks) {
    const std::string actual = outcome(block.command);
    EXPECT_EQ(actual, block.outcome) << "$ " << block.command;
    blessed += (blessed.empty() ? "$ " : "\n$ ") + block.command + "\n" + actual;
  }
  if (std::getenv("PLOW_BLESS") != nullptr) write_file(kGolden, blessed);
}

// Whatever goes wrong, the message is one line, does not blame plow, and the exit code is a class.
TEST(Errors, EveryMessageIsOneLineWithAnExitCodeOfItsClass) {
  for (const Block& block : read_blocks(read_file(kGolden))) {
    const std::string& o = block.outcome;
    ASSERT_TRUE(o.starts_with("exit ")) << block.command;
    EXPECT_TRUE(o[5] >= '2' && o[5] <= '6' && o[6] == '\n') << block.command << ": " << o;
    EXPECT_EQ(std::count(o.begin(), o.end(), '\n'), 2) << block.command << ": " << o;
    EXPECT_TRUE(o.substr(7).starts_with(block.command.substr(0, block.command.find(' ')) + ":"))
        << block.command << ": " << o;
    EXPECT_EQ(o.find("internal error"), std::string::npos) << block.command << ": " << o;
  }
}

}  // namespace
}  // namespace plow
