// Answers questions about grammars, one JSON object a line, so that tools/compare_grammars.py can compare
// them with the Python packages jsonschema and xgrammar.
//
//   {"schema": ...} or {"gbnf": TEXT} or {"regex": TEXT}, and one of
//     "texts": N, "seed": S    -> {"texts": [...]}: random texts of the grammar
//     "accepts": [TEXT, ...]   -> {"accepts": [true, ...]}
//     "walk": [TOKEN, ...]     -> {"masks": [HEX, ...]}: before each token and behind the last, four bits of
//                                 ids a digit, lowest first; "x" at the end when the text may end there
//   {"vocabulary": [HEX, ...]} -> {}: the tokens' bytes, for walks
// A grammar that is refused gives {"error": MESSAGE}.
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/regex.h"
#include "grammar/testing/texts.h"
#include "grammar/token_trie.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <optional>

namespace {

using namespace plow;
namespace json = boost::json;

std::string text_of(const json::value& value) { return std::string(value.as_string()); }

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

std::string to_hex(const std::vector<uint32_t>& mask) {
  std::string digits;
  for (const uint32_t word : mask) {
    for (int nibble = 0; nibble < 8; ++nibble) digits += "0123456789abcdef"[word >> (4 * nibble) & 15];
  }
  return digits;
}

Result<Grammar> grammar_of(const json::object& question) {
  if (const json::value* schema = question.if_contains("schema")) return json_schema_grammar(*schema);
  if (const json::value* gbnf = question.if_contains("gbnf")) return parse_gbnf(text_of(*gbnf));
  return parse_regex(text_of(question.at("regex")));
}

json::array walk(Matcher& matcher, const TokenTrie& trie, size_t vocab, const json::array& tokens) {
  json::array masks;
  Matcher::State state = matcher.start();
  for (size_t i = 0;; ++i) {
    std::vector<uint32_t> mask((vocab + 31) / 32, 0);
    if (!trie.allow(matcher, state, mask).ok()) break;
    masks.emplace_back(to_hex(mask) + (matcher.may_end(state) ? "x" : ""));
    if (i == tokens.size()) break;
    for (const char c : trie.bytes(tokens[i].to_number<uint32_t>()))
      state = matcher.step(state, static_cast<uint8_t>(c));
  }
  return masks;
}

json::object answer(const json::object& question, const std::optional<TokenTrie>& trie, size_t vocab) {
  const Result<Grammar> grammar = grammar_of(question);
  if (!grammar.ok()) return {{"error", grammar.error().message}};
  Result<Automaton> automaton = compile_grammar(*grammar);
  if (!automaton.ok()) return {{"error", automaton.error().message}};
  Matcher matcher(std::make_shared<const Automaton>(std::move(*automaton)));
  if (const json::value* count = question.if_contains("texts")) {
    std::mt19937 random(question.at("seed").to_number<uint32_t>());
    json::array texts;
    for (int64_t i = 0; i < count->to_number<int64_t>(); ++i) {
      if (const auto text = random_text(matcher, random, 400)) texts.emplace_back(*text);
    }
    return {{"texts", texts}};
  }
  if (const json::value* texts = question.if_contains("accepts")) {
    json::array accepted;
    for (const json::value& text : texts->as_array()) accepted.emplace_back(matches(matcher, text_of(text)));
    return {{"accepts", accepted}};
  }
  return {{"masks", walk(matcher, *trie, vocab, question.at("walk").as_array())}};
}

}  // namespace

int main() {
  std::optional<TokenTrie> trie;
  size_t vocab = 0;
  for (std::string line; std::getline(std::cin, line);) {
    const json::value question = json::parse(line);
    json::object out;
    if (const json::value* tokens = question.as_object().if_contains("vocabulary")) {
      const json::array& list = tokens->as_array();
      vocab = list.size();
      trie.emplace(static_cast<uint32_t>(vocab), [&](uint32_t t) { return from_hex(text_of(list[t])); });
    } else {
      out = answer(question.as_object(), trie, vocab);
    }
    fmt::print("{}\n", json::serialize(out));
    std::fflush(stdout);
  }
  return 0;
}
