// Regular expressions as grammars, without looking back: the common part of what ECMA-262, Python and Rust
// write. Character classes, \d \w \s (of ASCII), groups, alternatives, * + ? {m,n} (a lazy ? after them
// changes nothing here), ^ at the beginning and $ at the end. Refused: back references, look-around, \b and
// \p{...}.
#pragma once

#include "base/error.h"
#include "grammar/grammar.h"

#include <functional>
#include <span>
#include <string_view>

namespace plow {

struct RegexOptions {
  // The whole text has to match; else the match may be anywhere in it, as JSON Schema's `pattern` means it.
  bool whole = true;
  // One character out of normal ranges; when empty, as UTF-8. In a JSON string some are escaped.
  std::function<Grammar::Expr(Grammar&, std::span<const CodeRange>)> character;
};

// Adds the expression to `grammar`. Errors (kInput): what is wrong, and at which character.
Result<Grammar::Expr> add_regex(Grammar& grammar, std::string_view pattern, const RegexOptions& options = {});

// A grammar of texts that match as a whole.
Result<Grammar> parse_regex(std::string_view pattern);

}  // namespace plow
