// Arbitrary bytes as a regular expression, a GBNF grammar or a JSON Schema. Beyond not crashing: what is
// refused is refused with a message, and from every state that is met the text can go on or end, unless a
// bound was hit.
#include "base/check.h"
#include "grammar/automaton.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/matcher.h"
#include "grammar/regex.h"

#include <boost/json/parse.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace {

std::optional<plow::Result<plow::Grammar>> grammar_of(uint8_t kind, std::string_view text) {
  if (kind % 4 == 0) return plow::parse_regex(text);
  if (kind % 4 == 1) return plow::parse_gbnf(text);
  boost::json::parse_options options;
  options.max_depth = 64;  // as the server reads bodies, with room to spare
  boost::system::error_code error;
  const boost::json::value schema =
      boost::json::parse({text.data(), text.size()}, error, boost::json::storage_ptr(), options);
  if (error) return {};
  return plow::json_schema_grammar(schema, {.strict = kind % 4 == 2});
}

// Takes one of the bytes that may come next, now an early one, now a late one.
void walk(plow::Matcher& matcher) {
  plow::Matcher::State state = matcher.start();
  for (unsigned step = 0; step < 60; ++step) {
    plow::Matcher::State next = plow::Matcher::kDead;
    for (unsigned i = 0; i < 256 && next == plow::Matcher::kDead; ++i)
      next = matcher.step(state, static_cast<uint8_t>(step % 3 == 0 ? i : 255 - i));
    if (matcher.overflowed()) return;
    PLOW_CHECK(next != plow::Matcher::kDead || matcher.may_end(state), "a text that cannot end");
    PLOW_CHECK((next != plow::Matcher::kDead) == matcher.may_go_on(state), "may_go_on() is wrong");
    if (next == plow::Matcher::kDead) return;
    state = next;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto grammar = grammar_of(data[0], {reinterpret_cast<const char*>(data + 1), size - 1});
  if (!grammar) return 0;
  if (!grammar->ok()) {
    PLOW_CHECK(!grammar->error().message.empty(), "an error without a message");
    return 0;
  }
  auto automaton = plow::compile_grammar(**grammar);
  if (!automaton.ok()) {
    PLOW_CHECK(!automaton.error().message.empty(), "an error without a message");
    return 0;
  }
  plow::Matcher matcher(std::make_shared<const plow::Automaton>(std::move(*automaton)));
  walk(matcher);
  return 0;
}
