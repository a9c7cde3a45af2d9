// What a JSON Schema says of strings and numbers, as expressions; and how errors of schemas read.
#pragma once

#include "base/error.h"
#include "grammar/grammar.h"
#include "grammar/json_grammar.h"

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace plow {

// `path` is that of the schema: "/properties/age".
Error schema_error(const std::string& path, const std::string& what);
// `why` follows the keyword: " beside pattern".
Error schema_unsupported(const std::string& path, std::string_view keyword, const std::string& why = "");

// Two keywords that bound a count, from 0 to Grammar::kNoLimit when absent. Errors: no counts, the least
// above the most.
Result<std::pair<uint32_t, uint32_t>> schema_counts(const boost::json::object& object, const char* least,
                                                    const char* most, const std::string& path);

// minLength, maxLength, pattern, format. Errors (strict): combinations and formats that are not supported.
Result<Grammar::Expr> string_schema(Grammar& grammar, JsonGrammar& json, const boost::json::object& object,
                                    bool strict, const std::string& path);

// minimum, maximum, exclusiveMinimum, exclusiveMaximum.
Result<Grammar::Expr> number_schema(Grammar& grammar, JsonGrammar& json, const boost::json::object& object,
                                    bool integer, const std::string& path);

}  // namespace plow
