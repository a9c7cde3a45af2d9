#include "grammar/json_schema.h"

#include "grammar/json_grammar.h"
#include "grammar/schema_scalars.h"
#include "grammar/schema_values.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
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

  static Error wrong(const std::string& path, const std::string& what) { return schema_error(path, what); }
  static Error unsupported(const std::string& path, std::string_view keyword, const std::string& why = "") {
    return schema_unsupported(path, keyword, why);
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
    if (type == "string") return string_schema(grammar_, json_, object, options_.strict, path);
    if (type == "number" || type == "integer")
      return number_schema(grammar_, json_, object, type == "integer", path);
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

  // ---- containers

  Result<Expr> array_of(const json::object& object, const std::string& path, int depth) {
    PLOW_TRY(const auto lengths, schema_counts(object, "minItems", "maxItems", path));
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
    return json_.array_of(first, grammar_.shared(item), lengths.first, lengths.second);
  }

  Result<Expr> object_of(const json::object& object, const std::string& path, int depth) {
    std::vector<JsonGrammar::Member> members;
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
    PLOW_TRY(const auto lengths, schema_counts(object, "minProperties", "maxProperties", path));
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
    if (members.empty()) return json_.map_of(other, lengths.first, lengths.second);
    return json_.members_in_order(members, other);
  }

  Expr pair(const std::string& name, Expr value) {
    return grammar_.shared(grammar_.sequence({json_.literal(json::value(name)), json_.colon(), value}));
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
