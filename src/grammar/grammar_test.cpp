#include "grammar/gbnf.h"
#include "grammar/number_range.h"
#include "grammar/regex.h"
#include "grammar/testing/texts.h"
#include "grammar/token_trie.h"
#include "text/tokenizer/utf8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

namespace plow {
namespace {

Grammar gbnf(std::string_view text) {
  auto grammar = parse_gbnf(text);
  EXPECT_TRUE(grammar.ok()) << (grammar.ok() ? "" : grammar.error().message);
  return std::move(*grammar);
}

std::string gbnf_error(std::string_view text) {
  const auto grammar = parse_gbnf(text);
  if (!grammar.ok()) return grammar.error().message;
  const auto automaton = compile_grammar(*grammar);
  return automaton.ok() ? "" : automaton.error().message;
}

TEST(Gbnf, RulesMatchWhatTheySay) {
  const Grammar list =
      gbnf("# a list\nroot ::= \"[\" (item (\",\" item)*)? \"]\"\nitem ::= [0-9]+ | root # nested\n");
  for (const char* good : {"[]", "[1]", "[12,[],[3,[4]]]"}) EXPECT_TRUE(matches(list, good)) << good;
  for (const char* bad : {"", "[", "[1,]", "[1][2]", "[a]", "1"}) EXPECT_FALSE(matches(list, bad)) << bad;
  const Grammar counted = gbnf("root ::= \"a\"{2,3} \"b\"{2} [^c]{1,} \"\\x21\\u00e9\\n\"?");
  EXPECT_TRUE(matches(counted, "aabbd"));
  EXPECT_TRUE(matches(counted, "aaabb\xf0\x9f\x98\x80!\xc3\xa9\n"));
  EXPECT_FALSE(matches(counted, "abbd"));
  EXPECT_FALSE(matches(counted, "aaaabbd"));
  EXPECT_FALSE(matches(counted, "aabbc"));
  EXPECT_FALSE(matches(counted, "aabb\xf0\x9f\x98")) << "half of a character";
}

TEST(Gbnf, BracketsThatRecurAreCounted) {
  const Grammar grammar = gbnf("root ::= \"(\" root \")\" root | \"\"");
  EXPECT_TRUE(matches(grammar, ""));
  EXPECT_TRUE(matches(grammar, "(()())()"));
  EXPECT_FALSE(matches(grammar, "(()"));
  const std::string deep = std::string(20'000, '(') + std::string(20'000, ')');
  EXPECT_TRUE(matches(grammar, deep));
}

TEST(Gbnf, FaultsAreNamed) {
  EXPECT_NE(gbnf_error("root ::= item").find("item is used and not defined"), std::string::npos);
  EXPECT_NE(gbnf_error("x ::= \"a\"").find("no rule named root"), std::string::npos);
  EXPECT_NE(gbnf_error("root ::= \"a").find("line 1"), std::string::npos);
  EXPECT_NE(gbnf_error("root ::= \"a\"\nroot ::= \"b\"").find("second time"), std::string::npos);
  EXPECT_NE(gbnf_error("root ::= root \"a\" | \"a\"").find("left recursion"), std::string::npos);
  EXPECT_NE(gbnf_error("root ::= e root \"a\" | \"a\"\ne ::= \"b\"?").find("left recursion"),
            std::string::npos);
  EXPECT_NE(gbnf_error("root ::= \"a\" root").find("Nothing matches"), std::string::npos);
  EXPECT_NE(gbnf_error("root ::= \"a\"{100000} \"b\"{100000}").find("states"), std::string::npos);
  EXPECT_NE(gbnf_error("root ::= " + std::string(100'000, '(')).find("too deep"), std::string::npos);
  EXPECT_NE(gbnf_error("root ::= \"\\q\"").find("escape"), std::string::npos);
  EXPECT_NE(gbnf_error("root ::= [b-a]").find("order"), std::string::npos);
}

TEST(Gbnf, ABranchThatCannotEndIsNeverBegun) {
  Matcher matcher(automaton_of(gbnf("root ::= \"a\" loop | \"b\"\nloop ::= \"x\" loop")));
  EXPECT_EQ(matcher.step(matcher.start(), 'a'), Matcher::kDead);
  EXPECT_TRUE(matches(matcher, "b"));
}

// std::regex is the oracle: random patterns of its own syntax on random short texts.
TEST(Regex, MatchesAsTheStandardLibraryDoes) {
  std::mt19937 random(3);
  const auto pick = [&](std::initializer_list<const char*> from) {
    return std::string(from.begin()[random() % from.size()]);
  };
  const std::function<std::string(int)> pattern = [&](int depth) -> std::string {
    std::string text;
    for (size_t n = 1 + random() % 3; n > 0; --n) {
      if (depth > 0 && random() % 3 == 0) {
        text +=
            pick({"(", "(?:"}) + pattern(depth - 1) + (random() % 2 ? "|" + pattern(depth - 1) : "") + ")";
      } else {
        text += pick({"a", "b", "c", ".", "[ab]", "[^a]", "[a-c1]", "\\d", "\\w", "\\W", "\\s", "\\.", "1"});
      }
      text += pick({"", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,}", "*?"});
    }
    return text;
  };
  int matched = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string text = pattern(2);
    const auto grammar = parse_regex(text);
    ASSERT_TRUE(grammar.ok()) << text << ": " << grammar.error().message;
    Matcher matcher(automaton_of(*grammar));
    const std::regex oracle(text);
    for (int t = 0; t < 60; ++t) {
      std::string tried;
      for (size_t n = random() % 6; n > 0; --n) tried += "abc1. "[random() % 6];
      const bool expected = std::regex_match(tried, oracle);
      ASSERT_EQ(matches(matcher, tried), expected) << text << " on " << tried;
      matched += expected ? 1 : 0;
    }
  }
  EXPECT_GT(matched, 500);
}

TEST(Regex, CharactersAreUnicode) {
  const auto regex = [](std::string_view text) { return *parse_regex(text); };
  EXPECT_TRUE(matches(regex("[\xc3\xa0-\xc3\xbf]+"), "\xc3\xa9\xc3\xa8"));
  EXPECT_TRUE(matches(regex("[^x]"), "\xe4\xbd\xa0"));
  EXPECT_TRUE(matches(regex("\\u4f60."), "\xe4\xbd\xa0\xe5\xa5\xbd"));
  EXPECT_FALSE(matches(regex("."), "\xe4\xbd"));
  EXPECT_FALSE(matches(regex("."), "\xed\xa0\x80")) << "a surrogate";
  // Every code point's encoding, and nothing else, one after the other.
  Matcher any(automaton_of(regex("[^\\n]")));
  for (uint32_t code = 0; code <= kLastCode; code += code < 0x900 ? 1 : 97) {
    std::string text;
    append_utf8(text, static_cast<char32_t>(code));
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    ASSERT_EQ(matches(any, text), code != '\n' && !surrogate) << code;
  }
}

TEST(Regex, WhatCannotBeMatchedIsRefused) {
  for (const char* bad : {"[", "(", ")", "a**", "*a", "a{2,1}", "(?=a)", "(?<!a)b", "\\1", "\\bword",
                          "\\p{L}", "a^b", "[z-a]", "\\", "(?<n", "a{999999999}"}) {
    EXPECT_FALSE(parse_regex(bad).ok()) << bad;
  }
  EXPECT_TRUE(parse_regex("^(?P<year>\\d{4})-(?<month>\\d\\d)$").ok());
}

TEST(Regex, OnesThatMakeOthersBacktrackAreLinear) {
  const auto grammar = parse_regex("(a+)+(a|a)*(a*)*b");
  ASSERT_TRUE(grammar.ok());
  Matcher matcher(automaton_of(*grammar));
  EXPECT_TRUE(matches(matcher, std::string(20'000, 'a') + "b"));
  EXPECT_FALSE(matches(matcher, std::string(20'000, 'a')));
  EXPECT_FALSE(matcher.overflowed());
}

TEST(NumberRange, HasTheNumbersBetweenItsBoundsAndNoOthers) {
  std::vector<std::string> texts = {"-0", "-0.0", "00", "1.", ".5", "01", "1e3", "-", ""};
  for (int i = -1250; i <= 1250; ++i) {
    texts.push_back(std::to_string(i));
    for (const char* fraction : {".0", ".00", ".5", ".25", ".250", ".9999", ".000001"})
      texts.push_back((i == 0 ? "0" : std::to_string(i)) + fraction);
  }
  const auto canonical = [](const std::string& text) {
    static const std::regex form("-?(0|[1-9][0-9]*)(\\.[0-9]{1,6})?");
    return std::regex_match(text, form);
  };
  struct Case {
    std::optional<NumberBound> least, most;
  };
  for (const Case& c : {Case{{{0, false}}, {{9, false}}}, Case{{{0, true}}, {{1, true}}},
                        Case{{{-12.5, false}}, {{7.25, true}}}, Case{{{99, false}}, {{101, true}}},
                        Case{{{-1000, true}}, {{-99.75, false}}}, Case{{{0.25, false}}, {{0.25, false}}},
                        Case{{{3, true}}, {{3, false}}}, Case{{{17.3, false}}, {}}, Case{{}, {{-5, false}}},
                        Case{{{-0.5, false}}, {}}, Case{{{1234, false}}, {{1100, false}}}}) {
    for (const bool whole : {false, true}) {
      Grammar grammar;
      grammar.root = grammar.new_rule();
      grammar.define(grammar.root, grammar.choice({grammar.literal("nothing"),
                                                   whole ? integers_within(grammar, c.least, c.most)
                                                         : numbers_within(grammar, c.least, c.most)}));
      Matcher matcher(automaton_of(grammar));
      for (const std::string& text : texts) {
        const double x = std::strtod(text.c_str(), nullptr);
        bool in = canonical(text) && !(x == 0 && text.starts_with("-")) &&
                  (!whole || text.find('.') == std::string::npos);
        if (c.least) in &= c.least->exclusive ? x > c.least->value : x >= c.least->value;
        if (c.most) in &= c.most->exclusive ? x < c.most->value : x <= c.most->value;
        ASSERT_EQ(matches(matcher, text), in)
            << text << " in " << (c.least ? c.least->value : -1e99) << " .. "
            << (c.most ? c.most->value : 1e99) << (whole ? " whole" : "");
      }
    }
  }
}

// A vocabulary of all bytes and of random pieces of them.
std::vector<std::string> vocabulary() {
  std::mt19937 random(11);
  std::vector<std::string> tokens;
  for (unsigned byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (int i = 0; i < 3000; ++i) {
    std::string token;
    for (size_t n = 2 + random() % 5; n > 0; --n)
      token += "{}[]\",: \n0123456789abtruefalsn\\u\xc3\xa9"[random() % 36];
    tokens.push_back(token);
  }
  tokens.push_back("");                           // a control token
  tokens.push_back(tokens.back() + tokens[300]);  // the same bytes twice
  return tokens;
}

TEST(TokenTrie, AllowsTheTokensWhoseBytesMayFollow) {
  const auto tokens = vocabulary();
  const auto n = static_cast<uint32_t>(tokens.size());
  const TokenTrie trie(n, [&](uint32_t t) { return tokens[t]; });
  for (const char* text : {"root ::= \"{\" ([a-z]+ \":\" [0-9]{1,3} \",\"?)* \"}\"",
                           "root ::= [0-9]* (\"e\" root)?", "root ::= .{0,4}"}) {
    Matcher matcher(automaton_of(gbnf(text)));
    std::mt19937 random(5);
    Matcher::State state = matcher.start();
    for (int step = 0; step < 40; ++step) {
      std::vector<uint32_t> mask((n + 31) / 32, 0);
      ASSERT_TRUE(trie.allow(matcher, state, mask).ok());
      std::vector<uint32_t> allowed;
      for (uint32_t t = 0; t < n; ++t) {
        Matcher::State end = tokens[t].empty() ? Matcher::kDead : state;
        for (const char c : tokens[t]) end = matcher.step(end, static_cast<uint8_t>(c));
        const bool bit = (mask[t / 32] >> (t % 32) & 1) != 0;
        ASSERT_EQ(bit, end != Matcher::kDead) << "token " << t << " in " << text;
        if (bit) allowed.push_back(t);
      }
      if (allowed.empty()) break;
      for (const char c : tokens[allowed[random() % allowed.size()]])
        state = matcher.step(state, static_cast<uint8_t>(c));
      if (step % 10 == 9) state = matcher.forget_but(state);
    }
  }
}

TEST(Matcher, AGrammarThatIsReadInTooManyWaysOverflowsAndDoesNotHang) {
  // Each "a" may be one of two kinds of bracket: after n of them there are 2^n stacks.
  Matcher matcher(automaton_of(gbnf("root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"d\"")));
  Matcher::State state = matcher.start();
  for (int i = 0; i < 64 && !matcher.overflowed(); ++i) state = matcher.step(state, 'a');
  EXPECT_TRUE(matcher.overflowed());
  const TokenTrie trie(1, [](uint32_t) { return "a"; });
  std::vector<uint32_t> mask(1, 0);
  EXPECT_FALSE(trie.allow(matcher, matcher.start(), mask).ok());
}

TEST(Matcher, ForgettingKeepsWhatMayFollow) {
  const Grammar grammar = gbnf("root ::= \"[\" (item (\",\" item)*)? \"]\"\nitem ::= [0-9]+ | root\n");
  std::mt19937 random(9);
  for (int i = 0; i < 50; ++i) {
    Matcher plain(automaton_of(grammar)), forgetful(automaton_of(grammar));
    const auto text = random_text(plain, random, 60);
    if (!text) continue;
    Matcher::State state = forgetful.start();
    for (const char c : *text) state = forgetful.forget_but(forgetful.step(state, static_cast<uint8_t>(c)));
    EXPECT_TRUE(forgetful.may_end(state)) << *text;
    EXPECT_EQ(forgetful.step(state, ']'), Matcher::kDead);
  }
}

}  // namespace
}  // namespace plow
