// Texts against grammars, for tests: whether one matches, and random ones that do.
#pragma once

#include "grammar/automaton.h"
#include "grammar/matcher.h"

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plow {

inline std::shared_ptr<const Automaton> automaton_of(const Grammar& grammar) {
  auto automaton = compile_grammar(grammar);
  PLOW_CHECK(automaton.ok(), "{}", automaton.error().message);
  return std::make_shared<const Automaton>(std::move(*automaton));
}

inline bool matches(Matcher& matcher, std::string_view text) {
  Matcher::State state = matcher.start();
  for (const char c : text) state = matcher.step(state, static_cast<uint8_t>(c));
  return matcher.may_end(state);
}

inline bool matches(const Grammar& grammar, std::string_view text) {
  Matcher matcher(automaton_of(grammar));
  return matches(matcher, text);
}

// A text of the grammar, byte by byte among those that are allowed; none when it is longer than `most` bytes.
// What closes something is preferred the more the longer the text is.
inline std::optional<std::string> random_text(Matcher& matcher, std::mt19937& random, size_t most) {
  std::string text;
  Matcher::State state = matcher.start();
  while (text.size() <= most) {
    if (matcher.may_end(state) && (!matcher.may_go_on(state) || random() % 4 == 0)) return text;
    std::vector<uint8_t> all, preferred;
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (matcher.step(state, static_cast<uint8_t>(byte)) == Matcher::kDead) continue;
      all.push_back(static_cast<uint8_t>(byte));
      const std::string_view closing = text.size() > most / 3 ? "\"}],:" : "\"}]{,:0123456789-tfn";
      if (closing.find(static_cast<char>(byte)) != std::string_view::npos)
        preferred.push_back(static_cast<uint8_t>(byte));
    }
    if (all.empty()) return std::nullopt;
    const bool prefer = !preferred.empty() && (text.size() > most / 2 || random() % 3 > 0);
    const auto& from = prefer ? preferred : all;
    const uint8_t byte = from[random() % from.size()];
    text += static_cast<char>(byte);
    state = matcher.step(state, byte);
  }
  return std::nullopt;
}

}  // namespace plow
