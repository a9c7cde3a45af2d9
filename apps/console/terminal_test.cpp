#include "console/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

namespace plow {
namespace {

// A pseudo-terminal: the only way to have one in a test.
class PseudoTerminal {
 public:
  PseudoTerminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (master_ >= 0 && ::grantpt(master_) == 0 && ::unlockpt(master_) == 0)
      slave_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
  }
  ~PseudoTerminal() {
    ::close(slave_);
    ::close(master_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;
  int fd() const { return slave_; }

 private:
  int master_;
  int slave_ = -1;
};

class TerminalTest : public testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("NO_COLOR");
    ::unsetenv("COLUMNS");
    ::setenv("TERM", "xterm", 1);
    ASSERT_GE(pseudo_terminal_.fd(), 0);
  }
  Terminal look() const { return Terminal::of(pseudo_terminal_.fd()); }

  PseudoTerminal pseudo_terminal_;
};

TEST_F(TerminalTest, ATerminalHasColoursAndBars) {
  EXPECT_TRUE(look().interactive);
  EXPECT_TRUE(look().colour);
  EXPECT_EQ(look().red("x"), "\033[31mx\033[0m");
}

TEST_F(TerminalTest, AFileHasNeither) {
  const int fd = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  EXPECT_FALSE(Terminal::of(fd).interactive);
  EXPECT_FALSE(Terminal::of(fd).colour);
  EXPECT_EQ(Terminal::of(fd).red("x"), "x");
  ::close(fd);
}

TEST_F(TerminalTest, NoColorTakesColoursButNotBarsAway) {
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_TRUE(look().interactive);
  EXPECT_FALSE(look().colour);
  ::setenv("NO_COLOR", "", 1);  // no-color.org: "when present and not an empty string"
  EXPECT_TRUE(look().colour);
}

TEST_F(TerminalTest, ADumbTerminalGetsNeither) {
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(look().interactive);
  EXPECT_FALSE(look().colour);
}

TEST_F(TerminalTest, ColumnsWinsWhenItIsANumber) {
  ::setenv("COLUMNS", "37", 1);
  EXPECT_EQ(look().width, 37);
  ::setenv("COLUMNS", "wide", 1);
  EXPECT_EQ(look().width, 80);
  ::setenv("COLUMNS", "0", 1);
  EXPECT_EQ(look().width, 80);
}

}  // namespace
}  // namespace plow
