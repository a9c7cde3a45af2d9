// The building blocks: UTF-8, tries, splitting, regular expressions, Unicode.
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/pre_tokenize.h"
#include "text/tokenizer/regex.h"
#include "text/tokenizer/trie.h"
#include "text/tokenizer/unicode.h"
#include "text/tokenizer/utf8.h"

#include <gtest/gtest.h>

namespace plow {
namespace {

TEST(Utf8Test, EveryCodePointGoesThereAndBack) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c == 0xd800) c = 0xe000;
    std::string text;
    append_utf8(text, c);
    ASSERT_EQ(code_point_at(text, 0).value, c);
    ASSERT_EQ(code_point_at(text, 0).bytes, text.size());
    ASSERT_EQ(code_point_before("x" + text, 1 + text.size()).value, c);
    ASSERT_FALSE(first_invalid_utf8(text));
  }
}

TEST(Utf8Test, OverlongFormsSurrogatesAndLargeValuesAreInvalid) {
  for (const char* bytes :
       {"\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf0\x80\x80\xaf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe4\xb8", "\xf0\x9f\x98"}) {
    EXPECT_EQ(first_invalid_utf8(std::string("ok") + bytes), 2u) << bytes;
  }
}

// The examples of the Unicode standard 16.0, section 3.9, tables 3-8 to 3-11.
TEST(Utf8Test, EachMaximalSubpartBecomesOneReplacement) {
  const auto lossy = [](std::string_view bytes) {
    std::string out;
    append_lossy_utf8(out, bytes);
    return out;
  };
  const std::string r(kReplacementCharacter);
  EXPECT_EQ(lossy("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82"
                  "A"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(lossy("\xed\xa0\x80\xed\xbf\xbf\xed\xaf"
                  "A"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(lossy("\xf4\x91\x92\x93\xff"
                  "A\x80\xbf"
                  "B"),
            r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(lossy("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf"
                  "A"),
            r + r + r + r + "A");
}

TEST(ByteLevelTest, TheAlphabetIsThatOfGpt2) {
  EXPECT_EQ(kByteToChar[' '], 0x120);
  EXPECT_EQ(kByteToChar['\n'], 0x10a);
  EXPECT_EQ(kByteToChar['!'], '!');
  EXPECT_EQ(kByteToChar[0xad], 0x143);
  EXPECT_EQ(kByteToChar[0xff], 0xff);
  std::string every;
  for (int b = 0; b < 256; ++b) every.push_back(static_cast<char>(b));
  std::string spelled;
  append_byte_level(spelled, every);
  EXPECT_EQ(byte_level_bytes(spelled), every);
  EXPECT_EQ(byte_level_bytes("a b"), std::nullopt) << "a space is not of the alphabet";
}

TEST(TrieTest, TheLongestPrefixIsFound) {
  const auto nodes = build_trie({{"a", 1}, {"abc", 2}, {"b\xff", 3}, {"", 4}, {"a", 5}});
  ASSERT_TRUE(TrieView::valid(nodes, 6));
  const TrieView trie(nodes);
  EXPECT_EQ(trie.longest_prefix("abd"), (std::pair<size_t, uint32_t>{1, 5}))
      << "the last of two equal strings counts";
  EXPECT_EQ(trie.longest_prefix("abcd"), (std::pair<size_t, uint32_t>{3, 2}));
  EXPECT_EQ(trie.longest_prefix("b\xff"), (std::pair<size_t, uint32_t>{2, 3}));
  EXPECT_EQ(trie.longest_prefix("xyz").first, 0u);
  EXPECT_TRUE(build_trie({{"", 1}}).empty());
}

TEST(TrieTest, NodesThatPointBackwardsOrOutsideAreNotValid) {
  const auto nodes = build_trie({{"ab", 0}, {"ac", 1}});
  ASSERT_TRUE(TrieView::valid(nodes, 2));
  EXPECT_FALSE(TrieView::valid(nodes, 1)) << "a value that is too large";
  auto cycle = nodes;
  cycle[1].first_child = 0;
  EXPECT_FALSE(TrieView::valid(cycle, 2));
  auto outside = nodes;
  outside[1].child_count = 7;
  EXPECT_FALSE(TrieView::valid(outside, 2));
  auto unsorted = nodes;
  std::swap(unsorted[2].label, unsorted[3].label);
  EXPECT_FALSE(TrieView::valid(unsorted, 2));
}

std::vector<std::string> split(std::string_view text, SplitBehavior behavior) {
  std::vector<TextSpan> dashes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '-') dashes.push_back({i, i + 1});
  }
  std::vector<TextSpan> pieces;
  split_at({0, text.size()}, dashes, behavior, false, pieces);
  std::vector<std::string> out;
  for (const TextSpan& piece : pieces) out.emplace_back(text.substr(piece.begin, piece.end - piece.begin));
  return out;
}

// The example of the documentation of `tokenizers` (SplitDelimiterBehavior).
TEST(SplitTest, EachBehaviorCutsAsItsNameSays) {
  using Strings = std::vector<std::string>;
  const std::string_view text = "the-final--countdown";
  EXPECT_EQ(split(text, SplitBehavior::kRemoved), (Strings{"the", "final", "countdown"}));
  EXPECT_EQ(split(text, SplitBehavior::kIsolated), (Strings{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(split(text, SplitBehavior::kMergedWithPrevious), (Strings{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(split(text, SplitBehavior::kMergedWithNext), (Strings{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(split(text, SplitBehavior::kContiguous), (Strings{"the", "-", "final", "--", "countdown"}));
}

std::vector<TextSpan> matches(std::string_view pattern, std::string_view text) {
  const auto regex = Regex::compile(pattern);
  EXPECT_TRUE(regex.ok()) << regex.error().message;
  std::vector<TextSpan> spans;
  EXPECT_TRUE(regex->find_all(text, spans).ok());
  return spans;
}

TEST(RegexTest, MatchesDoNotOverlapAndEmptyOnesFollowNone) {
  EXPECT_EQ(matches("aa", "aaaaa"), (std::vector<TextSpan>{{0, 2}, {2, 4}}));
  EXPECT_EQ(matches("b*", "abb"), (std::vector<TextSpan>{{0, 0}, {1, 3}}));
  EXPECT_EQ(matches("", "\u00e9x"), (std::vector<TextSpan>{{0, 0}, {2, 2}, {3, 3}}));
}

// Assigned in Unicode 15.0, 15.0, 16.0, 16.0: U+31350 Lo Han, U+1E030 Lm, U+1C89 Lu, U+10D40 Nd.
TEST(RegexTest, ClassesHaveTheCodePointsOfUnicode16) {
  const std::string han = "\U00031350";
  EXPECT_EQ(matches(R"(\p{L})", han).size(), 1u);
  EXPECT_EQ(matches(R"(\p{Han}+)", han + "\u4e2d").size(), 1u);
  EXPECT_EQ(matches(R"([^\r\n\p{L}\p{N}])", han).size(), 0u);
  EXPECT_EQ(matches(R"(\P{L})", han).size(), 0u);
  EXPECT_EQ(matches(R"([\P{L}x])", han).size(), 0u);
  EXPECT_EQ(matches(R"(\p{^L})", han).size(), 0u);
  EXPECT_EQ(matches(R"(\p{Lm})", "\U0001e030").size(), 1u);
  EXPECT_EQ(matches(R"([\p{Lu}\p{Lt}&&[^\p{Han}]])", "\u1c89").size(), 1u);
  EXPECT_EQ(matches(R"(\d)", "\U00010d40").size(), 1u);
  EXPECT_EQ(matches(R"(\W)", "\U00010d40").size(), 0u);
  EXPECT_EQ(matches(R"(\p{C})", han).size(), 0u);
  EXPECT_EQ(matches(R"(\P{C})", han).size(), 1u);
  EXPECT_EQ(matches(R"(\p{Cn})", "\U000e0fff").size(), 1u);
}

TEST(RegexTest, WhatIsNoClassIsLeftAlone) {
  EXPECT_EQ(with_newer_code_points(R"(\\p{L}|\x{41}|[a-z]\n)"), R"(\\p{L}|\x{41}|[a-z]\n)");
  EXPECT_EQ(with_newer_code_points(R"(\p{L)"), R"(\p{L)");
  EXPECT_EQ(with_newer_code_points("a\\"), "a\\");
}

TEST(UnicodeTest, NormalFormsStopAtCodePointsThatAreTooNew) {
  EXPECT_EQ(normalized("e\u0301", NormalForm::kNfc), "\u00e9");
  EXPECT_EQ(normalized("\u1e9b\u0323", NormalForm::kNfkc), "\u1e69");
  EXPECT_EQ(normalized("\u00e9", NormalForm::kNfd), "e\u0301");
  EXPECT_EQ(normalized("\u00a0", NormalForm::kNfkd), " ");
  EXPECT_EQ(normalized("\u32ff", NormalForm::kNfkc), "\u32ff") << "Unicode 12.1";
  // U+08D3 (Unicode 11.0) has the combining class 220, but for Unicode 9.0 it is a starter: U+0301 does not
  // move before it.
  EXPECT_EQ(normalized("a\u08d3\u0301", NormalForm::kNfc), "a\u08d3\u0301");
}

TEST(UnicodeTest, LowercaseIsThatOfUnicode17) {
  const auto lower = [](char32_t c) {
    std::string out;
    append_lowercase(out, c);
    return out;
  };
  EXPECT_EQ(lower('A'), "a");
  EXPECT_EQ(lower(0x130), "i\u0307");
  EXPECT_EQ(lower(0x3a3), "\u03c3");
  EXPECT_EQ(lower(0xa7cb), "\u0264");
  EXPECT_EQ(lower(0x10d50), "\U00010d70");
}

TEST(UnicodeTest, AClusterIsWhatAReaderTakesForOneCharacter) {
  EXPECT_EQ(grapheme_length("e\u0301x"), 3u);
  EXPECT_EQ(grapheme_length("a\u0301\u0897x"), 6u) << "a mark of Unicode 16.0";
  EXPECT_EQ(grapheme_length("\r\n\n"), 2u);
  EXPECT_EQ(grapheme_length("\U0001f468\u200d\U0001f469!"), 11u);
}

}  // namespace
}  // namespace plow
