#include "grammar/json_schema.h"

#include "grammar/json_grammar.h"
#include "grammar/number_range.h"
#include "grammar/regex.h"
#include "grammar/schema_values.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plow {
namespace {

namespace json = boost::json;
using Expr = Grammar::Expr;
using Names = SchemaNames;

const Names kAnnotations = {"$schema",     "$id",        "$comment",    "$anchor",  "$defs",
                            "definitions", "title",      "description", "default",  "examples",
                            "example",     "deprecated", "readOnly",    "writeOnly"};

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

class SchemaCompiler {
 public:
  SchemaCompiler(Grammar& grammar, const json::value& root, const SchemaOptions& options)
      : root_(root), options_(options), grammar_(grammar), json_(grammar) {}

  Result<Expr> run() {
    PLOW_TRY(const Expr all, schema(root_, "", 0));
    // References are worked off here, so that a chain of them costs no stack.
    while (!pending_.empty()) {
      const auto [rule, target, path] = pending_.back();
      pending_.pop_back();
      PLOW_TRY(const Expr body, schema(*target, path, 0));
      grammar_.define(rule, body);
    }
    return all;
  }

 private:
  struct Pending {
    Grammar::Rule rule;
    const json::value* target;
    std::string path;
  };

  static Error wrong(const std::string& path, const std::string& what) {
    return input_error(fmt::format("The schema at \"{}\": {}", path.empty() ? "/" : path, what));
  }
  Error unsupported(const std::string& path, std::string_view keyword, const std::string& why = "") const {
    return wrong(path,
                 fmt::format("{} is not supported{}. With \"strict\": false it is ignored.", keyword, why));
  }

  Result<Expr> schema(const json::value& value, const std::string& path, int depth) {
    if (depth > kMostSchemaDepth) return wrong(path, "it is nested too deep.");
    if (value.is_bool()) return value.get_bool() ? json_.value() : grammar_.choice(std::span<const Expr>());
    if (!value.is_object()) return wrong(path, "a schema is an object, true or false.");
    const json::object& object = value.get_object();
    if (object.contains("$ref")) return reference(object, path);
    for (const char* name : {"anyOf", "oneOf"}) {
      if (object.contains(name)) return alternatives(object, name, path, depth);
    }
    if (object.contains("allOf")) return all_of(object, path, depth);
    if (object.contains("enum") || object.contains("const")) return literals(object, path);
    const Result<Names> types = schema_types(object);
    if (!types.ok()) return wrong(path, types.error().message);
    PLOW_TRY_STATUS(only_known(object, path));
    std::vector<Expr> choices;
    for (const std::string& type : *types) {
      PLOW_TRY(const Expr one, of_type(object, type, path, depth));
      choices.push_back(one);
    }
    return grammar_.choice(choices);
  }

  // ---- what a schema may have

  Status only_known(const json::object& object, const std::string& path) const {
    for (const auto& entry : object) {
      const std::string_view key = entry.key();
      if (key == "type" || kAnnotations.contains(key)) continue;
      if (!schema_keywords().contains(key) && options_.strict) return unsupported(path, key);
    }
    return {};
  }
  // The keyword stands alone but for annotations and, perhaps, a type.
  Status alone(const json::object& object, std::string_view keyword, const std::string& path) const {
    for (const auto& entry : object) {
      const std::string_view key = entry.key();
      if (key == keyword || key == "type" || kAnnotations.contains(key)) continue;
      if (options_.strict) return unsupported(path, key, fmt::format(" beside {}", keyword));
    }
    return {};
  }

  Result<Expr> of_type(const json::object& object, const std::string& type, const std::string& path,
                       int depth) {
    if (type == "object") return object_of(object, path, depth);
    if (type == "array") return array_of(object, path, depth);
    if (type == "string") return string_of(object, path);
    if (type == "number" || type == "integer") return number_of(object, type == "integer", path);
    if (type == "boolean") return grammar_.choice({grammar_.literal("true"), grammar_.literal("false")});
    return grammar_.literal("null");
  }

  // ---- combinations

  Result<Expr> reference(const json::object& object, const std::string& path) {
    PLOW_TRY_STATUS(alone(object, "$ref", path));
    const json::value& ref = object.at("$ref");
    if (!ref.is_string()) return wrong(path, "$ref is not a string.");
    const std::string name(ref.get_string());
    if (!name.starts_with("#"))
      return wrong(path, fmt::format("$ref {} leads out of the schema.", json::serialize(ref)));
    if (const auto known = references_.find(name); known != references_.end())
      return grammar_.use(known->second);
    boost::system::error_code error;
    const json::value* target = root_.find_pointer(name.substr(1), error);
    if (target == nullptr) return wrong(path, fmt::format("$ref {} leads nowhere.", json::serialize(ref)));
    const Grammar::Rule rule = grammar_.new_rule();
    references_.emplace(name, rule);
    pending_.push_back({rule, target, name.substr(1)});
    return grammar_.use(rule);
  }

  Result<Expr> alternatives(const json::object& object, const char* name, const std::string& path,
                            int depth) {
    PLOW_TRY_STATUS(alone(object, name, path));
    const json::value& list = object.at(name);
    if (!list.is_array() || list.get_array().empty())
      return wrong(path, fmt::format("{} is not a list of schemas.", name));
    const json::array& items = list.get_array();
    if (std::string_view(name) == "oneOf" && options_.strict) {
      for (size_t a = 0; a < items.size(); ++a) {
        for (size_t b = 0; b < a; ++b) {
          if (!schemas_apart(root_, items[a], items[b]))
            return unsupported(path, "oneOf", fmt::format(" where a value may match both {} and {}", b, a));
        }
      }
    }
    std::vector<Expr> choices;
    for (size_t i = 0; i < items.size(); ++i) {
      PLOW_TRY(const Expr one, schema(items[i], fmt::format("{}/{}/{}", path, name, i), depth + 1));
      choices.push_back(one);
    }
    return grammar_.choice(choices);
  }

  // One schema, or several objects whose members are put together.
  Result<Expr> all_of(const json::object& object, const std::string& path, int depth) {
    const json::value& list = object.at("allOf");
    if (!list.is_array() || list.get_array().empty()) return wrong(path, "allOf is not a list of schemas.");
    json::object merged = object;
    merged.erase("allOf");
    const bool annotations_only = std::ranges::all_of(
        merged, [](const auto& entry) { return kAnnotations.contains(std::string_view(entry.key())); });
    if (annotations_only && list.get_array().size() == 1)
      return schema(list.get_array()[0], path + "/allOf/0", depth + 1);
    for (const json::value& part : list.get_array()) {
      const json::object* from = resolved_schema(root_, part);
      if (from == nullptr) return unsupported(path, "allOf", " of what is no object of this schema");
      PLOW_TRY_STATUS(merge(*from, merged, path));
    }
    if (!merged.contains("type")) merged["type"] = "object";
    merged_.push_back(std::make_unique<json::value>(std::move(merged)));
    return schema(*merged_.back(), path, depth + 1);
  }

  Status merge(const json::object& from, json::object& to, const std::string& path) const {
    for (const auto& [key, value] : from) {
      if (kAnnotations.contains(std::string_view(key))) continue;
      json::value* there = to.if_contains(key);
      if (there == nullptr) {
        to[key] = value;
      } else if (key == "properties" && value.is_object() && there->is_object()) {
        for (const auto& [name, member] : value.get_object()) {
          json::value* same = there->get_object().if_contains(name);
          if (same == nullptr) {
            there->get_object()[name] = member;
          } else if (*same != member) {
            return unsupported(path, "allOf",
                               fmt::format(" with two schemas for {}", std::string_view(name)));
          }
        }
      } else if (key == "required" && value.is_array() && there->is_array()) {
        for (const json::value& name : value.get_array()) there->get_array().push_back(name);
      } else if (*there != value) {
        return unsupported(path, "allOf", fmt::format(" with two different {}", std::string_view(key)));
      }
    }
    return {};
  }

  Result<Expr> literals(const json::object& object, const std::string& path) {
    const char* name = object.contains("const") ? "const" : "enum";
    PLOW_TRY_STATUS(alone(object, name, path));
    const std::optional<json::array> values = listed_values(object);
    if (!values || values->empty()) return wrong(path, "enum is not a list of values.");
    const Result<Names> types = schema_types(object);
    if (!types.ok()) return wrong(path, types.error().message);
    std::vector<Expr> choices;
    for (const json::value& value : *values) {
      if (!object.contains("type") || has_schema_type(value, *types)) choices.push_back(json_.literal(value));
    }
    return grammar_.choice(choices);
  }

  // ---- scalars

  // A count of a keyword. Errors: not a whole number from 0 on.
  Result<uint32_t> count(const json::object& object, const char* name, uint32_t fallback,
                         const std::string& path) const {
    const json::value* value = object.if_contains(name);
    if (value == nullptr) return fallback;
    boost::system::error_code error;
    const auto number = value->to_number<uint32_t>(error);
    if (error || number == Grammar::kNoLimit) return wrong(path, fmt::format("{} is not a count.", name));
    return number;
  }
  Result<std::pair<uint32_t, uint32_t>> counts(const json::object& object, const char* least,
                                               const char* most, const std::string& path) const {
    PLOW_TRY(const uint32_t low, count(object, least, 0, path));
    PLOW_TRY(const uint32_t high, count(object, most, Grammar::kNoLimit, path));
    if (high < low) return wrong(path, fmt::format("{} is above {}.", least, most));
    return std::pair(low, high);
  }

  Result<Expr> string_of(const json::object& object, const std::string& path) {
    const json::value *pattern = object.if_contains("pattern"), *format = object.if_contains("format");
    PLOW_TRY(const auto lengths, counts(object, "minLength", "maxLength", path));
    const bool bounded = lengths.first > 0 || lengths.second != Grammar::kNoLimit;
    std::string text;
    RegexOptions options{.whole = false, .character = [this](Grammar&, std::span<const CodeRange> ranges) {
                           return json_.spelled(ranges);
                         }};
    if (pattern != nullptr) {
      if (!pattern->is_string()) return wrong(path, "pattern is not a string.");
      text = pattern->get_string();
    } else if (format != nullptr) {
      if (!format->is_string()) return wrong(path, "format is not a string.");
      const auto known = kFormats.find(std::string_view(format->get_string()));
      if (known == kFormats.end() && options_.strict)
        return unsupported(path, fmt::format("format {}", json::serialize(*format)));
      if (known != kFormats.end()) text = "^(?:" + known->second + ")$";
    }
    if (text.empty()) {
      return grammar_.sequence({grammar_.literal("\""),
                                grammar_.repeat(json_.string_character(), lengths.first, lengths.second),
                                grammar_.literal("\"")});
    }
    if (options_.strict && bounded)
      return unsupported(path, "a bound on the length", " beside pattern or format");
    if (options_.strict && pattern != nullptr && format != nullptr)
      return unsupported(path, "format", " beside pattern");
    const Result<Expr> inner = add_regex(grammar_, text, options);
    if (!inner.ok()) return wrong(path, fmt::format("pattern, {}", inner.error().message));
    return grammar_.sequence({grammar_.literal("\""), *inner, grammar_.literal("\"")});
  }

  Result<Expr> number_of(const json::object& object, bool integer, const std::string& path) {
    std::optional<NumberBound> least, most;
    const auto read = [&](const char* name, bool exclusive, std::optional<NumberBound>& bound,
                          double sign) -> Status {
      const json::value* value = object.if_contains(name);
      if (value == nullptr) return {};
      boost::system::error_code error;
      const auto number = value->to_number<double>(error);
      if (error) return wrong(path, fmt::format("{} is not a number.", name));
      if (std::abs(number) >= kLargestBound) return unsupported(path, name, " beyond 15 digits");
      // Of two bounds the narrower one counts.
      if (!bound || number * sign > bound->value * sign || (number == bound->value && exclusive))
        bound = NumberBound{number, exclusive};
      return {};
    };
    PLOW_TRY_STATUS(read("minimum", false, least, 1));
    PLOW_TRY_STATUS(read("exclusiveMinimum", true, least, 1));
    PLOW_TRY_STATUS(read("maximum", false, most, -1));
    PLOW_TRY_STATUS(read("exclusiveMaximum", true, most, -1));
    if (!least && !most) return integer ? json_.integer() : json_.number();
    return integer ? integers_within(grammar_, least, most) : numbers_within(grammar_, least, most);
  }

  // ---- containers

  Result<Expr> array_of(const json::object& object, const std::string& path, int depth) {
    PLOW_TRY(const auto lengths, counts(object, "minItems", "maxItems", path));
    std::vector<Expr> first;
    if (const json::value* prefix = object.if_contains("prefixItems")) {
      if (!prefix->is_array()) return wrong(path, "prefixItems is not a list of schemas.");
      for (size_t i = 0; i < prefix->get_array().size(); ++i) {
        PLOW_TRY(const Expr item,
                 schema(prefix->get_array()[i], fmt::format("{}/prefixItems/{}", path, i), depth + 1));
        first.push_back(item);
      }
    }
    const json::value* items = object.if_contains("items");
    if (items != nullptr && items->is_array())
      return unsupported(path, "items", " as a list (it is prefixItems now)");
    Expr item = json_.value();
    if (items != nullptr) {
      PLOW_TRY(item, schema(*items, path + "/items", depth + 1));
    }
    return array_from(first, grammar_.shared(item), lengths.first, lengths.second);
  }

  // From the end: what may follow the i-th item.
  Expr array_from(const std::vector<Expr>& first, Expr item, uint32_t least, uint32_t most) {
    const auto n = static_cast<uint32_t>(first.size());
    const auto minus = [](uint32_t a, uint32_t b) { return a > b ? a - b : 0; };
    const Expr more = grammar_.sequence({json_.comma(), item});
    Expr rest = grammar_.repeat(more, minus(least, std::max(n, 1u)),
                                most == Grammar::kNoLimit ? most : minus(most, std::max(n, 1u)));
    if (n == 0) {
      rest = most == 0 ? grammar_.empty() : grammar_.sequence({item, rest, json_.blank()});
      if (least == 0 && most > 0) rest = grammar_.optional(rest);
    } else {
      if (most <= n) rest = grammar_.empty();
      rest = grammar_.sequence({rest, json_.blank()});
      for (uint32_t i = n; i-- > 0;) {
        const Expr separator = i > 0 ? json_.comma() : grammar_.empty();
        if (i >= most) {
          rest = i == 0 ? grammar_.empty() : json_.blank();
          continue;
        }
        rest = grammar_.sequence({separator, first[i], rest});
        if (i >= least) rest = grammar_.choice({i > 0 ? json_.blank() : grammar_.empty(), rest});
      }
    }
    return grammar_.sequence({grammar_.literal("["), json_.blank(), rest, grammar_.literal("]")});
  }

  struct Member {
    Expr pair;
    bool required;
  };

  Result<Expr> object_of(const json::object& object, const std::string& path, int depth) {
    std::vector<Member> members;
    std::vector<std::string> names;
    Names required;
    if (const json::value* list = object.if_contains("required")) {
      if (!list->is_array()) return wrong(path, "required is not a list of names.");
      for (const json::value& name : list->get_array()) {
        if (!name.is_string()) return wrong(path, "required is not a list of names.");
        required.emplace(name.get_string());
      }
    }
    if (const json::value* properties = object.if_contains("properties")) {
      if (!properties->is_object()) return wrong(path, "properties is not an object.");
      for (const auto& [name, member] : properties->get_object()) {
        names.emplace_back(name);
        PLOW_TRY(const Expr value,
                 schema(member, fmt::format("{}/properties/{}", path, names.back()), depth + 1));
        members.push_back({pair(names.back(), value), required.erase(names.back()) > 0});
      }
    }
    const json::value* additional = object.if_contains("additionalProperties");
    Expr other_value = json_.value();
    if (additional != nullptr) {
      PLOW_TRY(other_value, schema(*additional, path + "/additionalProperties", depth + 1));
    }
    const bool closed = additional != nullptr && additional->is_bool() && !additional->get_bool();
    for (const std::string& name : required) {  // that no schema describes
      if (closed)
        return wrong(path,
                     fmt::format("{} is required and not allowed.", json::serialize(json::value(name))));
      names.push_back(name);
      members.push_back({pair(name, other_value), true});
    }
    PLOW_TRY(const auto lengths, counts(object, "minProperties", "maxProperties", path));
    const bool counted = lengths.first > 0 || lengths.second != Grammar::kNoLimit;
    if (!members.empty() && counted && options_.strict)
      return unsupported(path, "minProperties or maxProperties", " beside properties");
    // The same key may be written twice, and counts once.
    if (lengths.first > 1 && options_.strict) return unsupported(path, "minProperties", " above 1");
    // Members that are not described: wanted when the schema says so, or describes none.
    const bool open = additional != nullptr ? !closed : !object.contains("properties");
    std::optional<Expr> other;
    if (open) {
      const Expr key = json_.string_other_than(names);
      other = grammar_.shared(grammar_.sequence({key, json_.colon(), other_value}));
    }
    if (members.empty()) return map_of(other, lengths);
    return members_in_order(members, other);
  }

  Expr pair(const std::string& name, Expr value) {
    return grammar_.shared(grammar_.sequence({json_.literal(json::value(name)), json_.colon(), value}));
  }

  Expr map_of(std::optional<Expr> other, std::pair<uint32_t, uint32_t> lengths) {
    Expr inner = grammar_.empty();
    if (other && lengths.second > 0) {
      const Expr more = grammar_.sequence({json_.comma(), *other});
      const uint32_t most = lengths.second == Grammar::kNoLimit ? lengths.second : lengths.second - 1;
      inner = grammar_.sequence(
          {*other, grammar_.repeat(more, lengths.first > 0 ? lengths.first - 1 : 0, most), json_.blank()});
      if (lengths.first == 0) inner = grammar_.optional(inner);
    }
    return grammar_.sequence({grammar_.literal("{"), json_.blank(), inner, grammar_.literal("}")});
  }

  // From the end, two rules a member: what may follow when nothing (something) was written before it.
  Expr members_in_order(const std::vector<Member>& members, std::optional<Expr> other) {
    Grammar& g = grammar_;
    Expr first = json_.blank(), later = json_.blank();
    if (other) {
      const Expr more = g.repeat(g.sequence({json_.comma(), *other}), 0, Grammar::kNoLimit);
      later = g.sequence({more, json_.blank()});
      first = g.optional(g.sequence({*other, later}));
    } else {
      first = g.empty();
    }
    for (size_t i = members.size(); i-- > 0;) {
      const Expr with_first = g.sequence({members[i].pair, later});
      const Expr with_later = g.sequence({json_.comma(), members[i].pair, later});
      first = g.shared(members[i].required ? with_first : g.choice({with_first, first}));
      later = g.shared(members[i].required ? with_later : g.choice({with_later, later}));
    }
    return g.sequence({g.literal("{"), json_.blank(), first, g.literal("}")});
  }

  const json::value& root_;
  const SchemaOptions& options_;
  Grammar& grammar_;
  JsonGrammar json_;
  std::map<std::string, Grammar::Rule> references_;
  std::vector<Pending> pending_;
  std::vector<std::unique_ptr<json::value>> merged_;  // which expressions' paths may still be read from
};

Grammar with_root(Grammar grammar, Expr body) {
  grammar.root = grammar.new_rule();
  grammar.define(grammar.root, body);
  return grammar;
}

}  // namespace

Result<Expr> add_json_schema(Grammar& grammar, const json::value& schema, const SchemaOptions& options) {
  return SchemaCompiler(grammar, schema, options).run();
}

Result<Grammar> json_schema_grammar(const json::value& schema, const SchemaOptions& options) {
  Grammar grammar;
  PLOW_TRY(const Expr all, add_json_schema(grammar, schema, options));
  return with_root(std::move(grammar), all);
}

Grammar json_object_grammar() {
  Grammar grammar;
  const Expr object = JsonGrammar(grammar).object();
  return with_root(std::move(grammar), object);
}

Grammar choice_grammar(std::span<const std::string> texts) {
  Grammar grammar;
  std::vector<Expr> choices;
  for (const std::string& text : texts) choices.push_back(grammar.literal(text));
  const Expr all = grammar.choice(choices);
  return with_root(std::move(grammar), all);
}

}  // namespace plow
