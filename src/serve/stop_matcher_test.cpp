#include "serve/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace plow {
namespace {

std::string run(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopMatcher matcher(stops);
  std::string out;
  for (const std::string& piece : pieces) {
    out += matcher.push(piece);
    if (matcher.stopped()) return out + "|" + matcher.stopped_by();
  }
  return out + matcher.finish();
}

TEST(StopMatcher, TextWithoutStopsGoesThroughAtOnce) {
  StopMatcher matcher({});
  EXPECT_EQ(matcher.push("abc"), "abc");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, AStopOverSeveralPiecesNeverLeaks) {
  EXPECT_EQ(run({"own fox"}, {"the br", "own", " f", "ox jumps"}), "the br|own fox");
}

TEST(StopMatcher, OnlyTheAmbiguousTailIsHeldBack) {
  StopMatcher matcher({"own fox"});
  EXPECT_EQ(matcher.push("the brow"), "the br");
  EXPECT_EQ(matcher.push("s"), "ows");
  EXPECT_EQ(matcher.push("x o"), "x ");
  EXPECT_EQ(matcher.finish(), "o");
}

TEST(StopMatcher, ACharacterBeforeAStopArrives) { EXPECT_EQ(run({"\n"}, {"a", "b\nc"}), "ab|\n"); }

TEST(StopMatcher, APrefixOfOneStopIsDeliveredOnceWhenAnotherEnds) {
  EXPECT_EQ(run({"\n", "Alice:"}, {"Ali", "\n"}), "Ali|\n");
  EXPECT_EQ(run({"\n", "Alice:"}, {"Al", "ice:", "x"}), "|Alice:");
}

// The oracle reads the whole text at once: the stop that ends first, of several the one that begins first.
TEST(StopMatcher, HowTheTextIsCutDoesNotMatter) {
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    const auto word = [&](size_t most) {
      std::string text;
      for (size_t n = 1 + random() % most; n > 0; --n) text += static_cast<char>('a' + random() % 2);
      return text;
    };
    std::vector<std::string> stops;
    for (size_t n = random() % 4; n > 0; --n) stops.push_back(word(5));
    const std::string text = word(30);
    std::string expected = text;
    for (size_t end = 1; end <= text.size() && expected == text; ++end) {
      const std::string* best = nullptr;
      for (const std::string& stop : stops) {
        if (end >= stop.size() && text.compare(end - stop.size(), stop.size(), stop) == 0 &&
            (best == nullptr || stop.size() > best->size())) {
          best = &stop;
        }
      }
      if (best != nullptr) {
        expected = text.substr(0, end - best->size()) + "|" + *best;
        break;
      }
    }
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t n = 1 + random() % 4;
      pieces.push_back(text.substr(at, n));
      at += n;
    }
    ASSERT_EQ(run(stops, pieces), expected) << text << " with " << testing::PrintToString(stops);
  }
}

}  // namespace
}  // namespace plow
