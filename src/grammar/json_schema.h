// JSON Schema as a grammar: every text of it is JSON that the schema accepts, though not every such JSON is
// one of its texts: members come in the schema's order, members that the schema does not name only where
// additionalProperties says so, numbers without more digits than json_grammar.h allows.
//
// Keywords (draft 2020-12, and the names that older drafts had): type, enum, const, properties, required,
// additionalProperties, minProperties and maxProperties of objects without properties, items, prefixItems,
// minItems, maxItems, minLength, maxLength, pattern, format (date, time, date-time, uuid, ipv4, email),
// minimum, maximum, exclusiveMinimum, exclusiveMaximum, anyOf, oneOf of schemas that no value can both match,
// allOf of one schema or of objects' properties, $ref within the schema (recursive too), true and false.
#pragma once

#include "base/error.h"
#include "grammar/grammar.h"

#include <boost/json/value.hpp>

#include <span>
#include <string>

namespace plow {

struct SchemaOptions {
  bool strict = true;  // a keyword that is not supported is an error; else it is ignored
};

// Schemas within schemas.
constexpr int kMostSchemaDepth = 64;

// Errors (kInput): a schema that is none, that nothing matches, or that has a keyword which is not supported:
// keyword and path ("/properties/age") are named.
Result<Grammar> json_schema_grammar(const boost::json::value& schema, const SchemaOptions& options = {});

// The same as a part of `grammar`.
Result<Grammar::Expr> add_json_schema(Grammar& grammar, const boost::json::value& schema,
                                      const SchemaOptions& options = {});

// Any object.
Grammar json_object_grammar();

// One of the texts. REQUIRES at least one.
Grammar choice_grammar(std::span<const std::string> texts);

}  // namespace plow
