#include "grammar/schema_scalars.h"

#include "grammar/number_range.h"
#include "grammar/regex.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>
#include <span>

namespace plow {
namespace {

using Expr = Grammar::Expr;

// RFC 3339 and RFC 4122; of February the 29th is left out, which not every year has.
constexpr const char* kDate =
    "\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|"
    "1\\d|2["
    "0-8]))";
constexpr const char* kTime =
    "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)";
const std::map<std::string, std::string, std::less<>> kFormats = {
    {"date", kDate},
    {"time", kTime},
    {"date-time", fmt::format("{}T{}", kDate, kTime)},
    {"uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"},
    {"ipv4", "(?:(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)\\.){3}(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"},
    {"email",
     "[A-Za-z0-9_+-]{1,32}(?:\\.[A-Za-z0-9_+-]{1,16}){0,3}@[a-z0-9]{1,32}(?:\\.[a-z0-9]{1,16}){1,3}"},
};

// A count of a keyword. Errors: not a whole number from 0 on.
Result<uint32_t> count(const boost::json::object& object, const char* name, uint32_t fallback,
                       const std::string& path) {
  const boost::json::value* value = object.if_contains(name);
  if (value == nullptr) return fallback;
  boost::system::error_code error;
  const auto number = value->to_number<uint32_t>(error);
  if (error || number == Grammar::kNoLimit)
    return schema_error(path, fmt::format("{} is not a count.", name));
  return number;
}
}  // namespace

Result<std::pair<uint32_t, uint32_t>> schema_counts(const boost::json::object& object, const char* least,
                                                    const char* most, const std::string& path) {
  PLOW_TRY(const uint32_t low, count(object, least, 0, path));
  PLOW_TRY(const uint32_t high, count(object, most, Grammar::kNoLimit, path));
  if (high < low) return schema_error(path, fmt::format("{} is above {}.", least, most));
  return std::pair(low, high);
}

Error schema_error(const std::string& path, const std::string& what) {
  return input_error(fmt::format("The schema at \"{}\": {}", path.empty() ? "/" : path, what));
}

Error schema_unsupported(const std::string& path, std::string_view keyword, const std::string& why) {
  return schema_error(
      path, fmt::format("{} is not supported{}. With \"strict\": false it is ignored.", keyword, why));
}

Result<Expr> string_schema(Grammar& grammar, JsonGrammar& json, const boost::json::object& object,
                           bool strict, const std::string& path) {
  const boost::json::value *pattern = object.if_contains("pattern"), *format = object.if_contains("format");
  PLOW_TRY(const auto lengths, schema_counts(object, "minLength", "maxLength", path));
  const bool bounded = lengths.first > 0 || lengths.second != Grammar::kNoLimit;
  std::string text;
  RegexOptions options{.whole = false, .character = [&](Grammar&, std::span<const CodeRange> ranges) {
                         return json.spelled(ranges);
                       }};
  if (pattern != nullptr) {
    if (!pattern->is_string()) return schema_error(path, "pattern is not a string.");
    text = pattern->get_string();
  } else if (format != nullptr) {
    if (!format->is_string()) return schema_error(path, "format is not a string.");
    const auto known = kFormats.find(std::string_view(format->get_string()));
    if (known == kFormats.end() && strict)
      return schema_unsupported(path, fmt::format("format {}", boost::json::serialize(*format)));
    if (known != kFormats.end()) text = "^(?:" + known->second + ")$";
  }
  if (text.empty()) {
    return grammar.sequence({grammar.literal("\""),
                             grammar.repeat(json.string_character(), lengths.first, lengths.second),
                             grammar.literal("\"")});
  }
  if (strict && bounded)
    return schema_unsupported(path, "a bound on the length", " beside pattern or format");
  if (strict && pattern != nullptr && format != nullptr)
    return schema_unsupported(path, "format", " beside pattern");
  const Result<Expr> inner = add_regex(grammar, text, options);
  if (!inner.ok()) return schema_error(path, fmt::format("pattern, {}", inner.error().message));
  return grammar.sequence({grammar.literal("\""), *inner, grammar.literal("\"")});
}

Result<Expr> number_schema(Grammar& grammar, JsonGrammar& json, const boost::json::object& object,
                           bool integer, const std::string& path) {
  std::optional<NumberBound> least, most;
  const auto read = [&](const char* name, bool exclusive, std::optional<NumberBound>& bound,
                        double sign) -> Status {
    const boost::json::value* value = object.if_contains(name);
    if (value == nullptr) return {};
    boost::system::error_code error;
    const auto number = value->to_number<double>(error);
    if (error) return schema_error(path, fmt::format("{} is not a number.", name));
    if (std::abs(number) >= kLargestBound) return schema_unsupported(path, name, " beyond 15 digits");
    // Of two bounds the narrower one counts.
    if (!bound || number * sign > bound->value * sign || (number == bound->value && exclusive))
      bound = NumberBound{number, exclusive};
    return {};
  };
  PLOW_TRY_STATUS(read("minimum", false, least, 1));
  PLOW_TRY_STATUS(read("exclusiveMinimum", true, least, 1));
  PLOW_TRY_STATUS(read("maximum", false, most, -1));
  PLOW_TRY_STATUS(read("exclusiveMaximum", true, most, -1));
  if (!least && !most) return integer ? json.integer() : json.number();
  return integer ? integers_within(grammar, least, most) : numbers_within(grammar, least, most);
}

}  // namespace plow
