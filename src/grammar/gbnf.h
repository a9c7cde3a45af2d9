// GBNF, the grammars of llama.cpp: rules `name ::= ...` of "literals", [classes], (groups), a | b and the
// repetitions * + ? {m} {m,} {m,n}; # begins a comment; the rule `root` is the grammar. As described in
// llama.cpp's grammars/README.md.
#pragma once

#include "base/error.h"
#include "grammar/grammar.h"

#include <string_view>

namespace plow {

// Errors (kInput): what is wrong, with line and column.
Result<Grammar> parse_gbnf(std::string_view text);

}  // namespace plow
