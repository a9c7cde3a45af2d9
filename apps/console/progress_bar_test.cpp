#include "console/progress_bar.h"

#include "base/text_table.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

namespace plow {
namespace {

ProgressState half_done() { return {"weights", 134'500'000, 269'000'000, ProgressUnit::kBytes, 2.0}; }

// What a bar wrote to a stream of its own.
template <class Use>
std::string written(Terminal terminal, Use use) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  {
    ProgressBar bar(file.get(), terminal);
    use(bar);
  }
  std::string text(static_cast<size_t>(std::ftell(file.get())), '\0');
  std::rewind(file.get());
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file.get()), text.size());
  return text;
}

TEST(ProgressBar, ShowsShareAmountRateAndTimeLeft) {
  EXPECT_EQ(render_progress(half_done(), 120),
            "weights    50% [============>           ] 134.5 MB of 269.0 MB 67.2 MB/s 0:02 left");
}

TEST(ProgressBar, LeavesOutFromTheRightWhatANarrowTerminalHasNoRoomFor) {
  EXPECT_EQ(render_progress(half_done(), 72),
            "weights    50% [============>           ] 134.5 MB of 269.0 MB 67.2 MB/s");
  EXPECT_EQ(render_progress(half_done(), 45), "weights    50% [============>           ]");
  EXPECT_EQ(render_progress(half_done(), 20), "weights    50%");
  EXPECT_EQ(render_progress(half_done(), 4), "weig");
  for (int width = 1; width < 130; ++width)
    EXPECT_LE(render_progress(half_done(), width).size(), static_cast<size_t>(width));
}

TEST(ProgressBar, ShowsNoRateBeforeThereIsOneAndNoTotalWhenNoneIsKnown) {
  EXPECT_EQ(render_progress({"graph", 0, 4, ProgressUnit::kItems, 0.0}, 80),
            "graph       0% [>                       ] 0 of 4");
  EXPECT_EQ(render_progress({"graph", 7, 0, ProgressUnit::kItems, 0.1}, 80), "graph     7");
}

TEST(ProgressBar, AFullBarHasNoTimeLeft) {
  EXPECT_EQ(render_progress({"weights", 9, 9, ProgressUnit::kItems, 3.0}, 80),
            "weights   100% [========================] 9 of 9 3/s");
}

TEST(ProgressBar, PrintsOneLineAStageWhenNobodyLooks) {
  const std::string text = written({}, [](ProgressBar& bar) {
    for (uint64_t i = 0; i <= 100; ++i) bar.update("graph", i, 100, ProgressUnit::kItems);
    bar.update("weights", 0, 2'000'000, ProgressUnit::kBytes);
    bar.finish();
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_EQ(text.find('\033'), std::string::npos) << text;
  EXPECT_NE(text.find("weights"), std::string::npos) << text;
  EXPECT_NE(text.find("2.00 MB"), std::string::npos) << text;
}

TEST(ProgressBar, TakesItselfOffTheScreenBeforeALineStays) {
  const std::string text = written({.interactive = true, .colour = false, .width = 60}, [](ProgressBar& bar) {
    bar.update("graph", 1, 2, ProgressUnit::kItems);
    bar.finish();
  });
  EXPECT_EQ(text.rfind("\r\033[Kgraph", 0), 0u) << text;
  EXPECT_NE(text.find("\r\033[K  graph"), std::string::npos) << text;
}

TEST(ProgressBar, KeepsNoLinesWhenTold) {
  const std::string text = written({}, [](ProgressBar& bar) {
    bar.keep_lines(false);
    bar.update("graph", 1, 2, ProgressUnit::kItems);
    bar.finish();
  });
  EXPECT_EQ(text, "");
}

}  // namespace
}  // namespace plow
