// What values a JSON Schema means, without a grammar: its types, its lists, and whether two schemas have a
// value in common.
#pragma once

#include "base/error.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace plow {

using SchemaNames = std::set<std::string, std::less<>>;

// The keywords that are understood and say something of values of one type (of numbers: two), by keyword.
const std::map<std::string, std::vector<std::string>, std::less<>>& schema_keywords();

// "number" stands for "integer" too. Without a type the keywords tell what is meant; without those any.
// Errors (kInput): a type that JSON Schema does not have.
Result<SchemaNames> schema_types(const boost::json::object& schema);
bool has_schema_type(const boost::json::value& value, const SchemaNames& types);

// The values that const or enum list; none when neither is there, or enum is no list.
std::optional<boost::json::array> listed_values(const boost::json::object& schema);

// The object that a chain of $ref within `root` ends at; null when it ends at none.
const boost::json::object* resolved_schema(const boost::json::value& root, const boost::json::value& schema);

// Whether no value can match both, as far as can be told from types, lists, and members that both require
// with lists of their own.
bool schemas_apart(const boost::json::value& root, const boost::json::value& a, const boost::json::value& b);

}  // namespace plow
