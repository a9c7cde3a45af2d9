#include "serve/structure.h"

#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/regex.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace plow {
namespace {

namespace json = boost::json;

constexpr size_t kMostMasks = 64;      // kept: with a vocabulary of 262,144 they are 2 MB
constexpr size_t kMostChoices = 1024;  // of `choice`

// A structure that was asked for, and the field that asked.
struct Asked {
  std::string field;
  Result<Grammar> grammar;
};

Result<Grammar> of_choices(const json::value& value) {
  std::vector<std::string> texts;
  const json::array* list = value.if_array();
  if (list == nullptr || list->empty() || list->size() > kMostChoices)
    return input_error(fmt::format("It must be a list of 1 to {} texts.", kMostChoices));
  for (const json::value& text : *list) {
    if (!text.is_string() || text.get_string().empty())
      return input_error("It must be a list of texts that are not empty.");
    texts.emplace_back(text.get_string());
  }
  return choice_grammar(texts);
}

// A schema may come as JSON text, too.
Result<Grammar> of_schema(const json::value& value, bool strict) {
  if (!value.is_string()) return json_schema_grammar(value, {strict});
  boost::system::error_code error;
  const json::value parsed = json::parse(value.get_string(), error);
  if (error) return input_error(fmt::format("It is not JSON: {}.", error.message()));
  return json_schema_grammar(parsed, {strict});
}

Result<Grammar> of_text(const json::value& value, Result<Grammar> (*parse)(std::string_view)) {
  if (!value.is_string()) return input_error("It must be a string.");
  return parse(value.get_string());
}

std::optional<Asked> of_response_format(const json::object& format) {
  const json::value* type = format.if_contains("type");
  const std::string_view name =
      type != nullptr && type->is_string() ? std::string_view(type->get_string()) : "";
  if (name == "text") return std::nullopt;
  if (name == "json_object") {
    // llama.cpp takes a schema here.
    const json::value* schema = format.if_contains("schema");
    return schema == nullptr ? Asked{"response_format", json_object_grammar()}
                             : Asked{"response_format.schema", of_schema(*schema, true)};
  }
  if (name != "json_schema") {
    return Asked{"response_format.type",
                 input_error("response_format.type must be \"text\", \"json_object\" or \"json_schema\".")};
  }
  const json::value* named = format.if_contains("json_schema");
  const json::object* inner = named == nullptr ? nullptr : named->if_object();
  const json::value* schema = inner == nullptr ? nullptr : inner->if_contains("schema");
  if (schema == nullptr) {
    return Asked{"response_format.json_schema",
                 input_error("response_format.json_schema must be an object with a schema.")};
  }
  const json::value* strict = inner->if_contains("strict");
  const bool lenient = strict != nullptr && strict->is_bool() && !strict->get_bool();
  return Asked{"response_format.json_schema.schema", of_schema(*schema, !lenient)};
}

void of_structured_outputs(const json::object& options, std::vector<Asked>& asked) {
  for (const auto& [key, value] : options) {
    const std::string field = "structured_outputs." + std::string(key);
    if (value.is_null() || (key == "json_object" && value == json::value(false))) continue;
    if (key == "json") {
      asked.push_back({field, of_schema(value, true)});
    } else if (key == "json_object") {
      asked.push_back({field, json_object_grammar()});
    } else if (key == "regex") {
      asked.push_back({field, of_text(value, parse_regex)});
    } else if (key == "choice") {
      asked.push_back({field, of_choices(value)});
    } else if (key == "grammar") {
      asked.push_back({field, of_text(value, parse_gbnf)});
    } else {
      asked.push_back(
          {field, input_error("structured_outputs has json, json_object, regex, choice and grammar.")});
    }
  }
}

std::vector<Asked> asked_for(const FieldReader& fields) {
  std::vector<Asked> asked;
  if (const json::value* format = fields.find("response_format")) {
    if (auto one = of_response_format(format->get_object())) asked.push_back(std::move(*one));
  }
  if (const json::value* options = fields.find("structured_outputs"))
    of_structured_outputs(options->get_object(), asked);
  for (const char* name : {"guided_json", "json_schema"}) {
    if (const json::value* value = fields.find(name)) asked.push_back({name, of_schema(*value, true)});
  }
  for (const char* name : {"guided_regex", "regex"}) {
    const json::value* value = fields.find(name);
    if (value != nullptr && value->get_string() != "") asked.push_back({name, of_text(*value, parse_regex)});
  }
  for (const char* name : {"guided_grammar", "grammar"}) {
    const json::value* value = fields.find(name);
    if (value != nullptr && value->get_string() != "") asked.push_back({name, of_text(*value, parse_gbnf)});
  }
  if (const json::value* value = fields.find("guided_choice"))
    asked.push_back({"guided_choice", of_choices(*value)});
  return asked;
}

}  // namespace

std::optional<ApiError> read_structure(const FieldReader& fields, std::shared_ptr<const Automaton>& out) {
  const std::vector<Asked> asked = asked_for(fields);
  for (const Asked& one : asked) {
    if (!one.grammar.ok())
      return invalid_field(one.field, fmt::format("{}: {}", one.field, one.grammar.error().message));
  }
  if (asked.empty()) return {};
  if (asked.size() > 1) {
    return invalid_field(asked[1].field, fmt::format("{} and {} both ask for a structure; an answer has one.",
                                                     asked[0].field, asked[1].field));
  }
  Result<Automaton> automaton = compile_grammar(*asked[0].grammar);
  if (!automaton.ok())
    return invalid_field(asked[0].field, fmt::format("{}: {}", asked[0].field, automaton.error().message));
  out = std::make_shared<const Automaton>(std::move(*automaton));
  return {};
}

StructureRule::StructureRule(std::shared_ptr<const Automaton> automaton, const TokenTrie& trie,
                             uint32_t vocab, std::vector<uint32_t> stop_ids)
    : trie_(trie),
      vocab_(vocab),
      stop_ids_(std::move(stop_ids)),
      matcher_(std::move(automaton)),
      state_(matcher_.start()) {}

Result<const uint32_t*> StructureRule::allowed() {
  if (const auto known = masks_.find(state_); known != masks_.end()) return known->second.data();
  if (masks_.size() >= kMostMasks) masks_.clear();
  std::vector<uint32_t> mask((vocab_ + 31) / 32, 0);
  PLOW_TRY_STATUS(trie_.allow(matcher_, state_, mask));
  if (matcher_.may_end(state_)) {
    for (const uint32_t id : stop_ids_) mask[id / 32] |= 1u << (id % 32);
  }
  if (std::ranges::all_of(mask, [](uint32_t word) { return word == 0; }))
    return input_error("No token of the model's vocabulary fits the structure here.");
  const uint32_t* words = (masks_[state_] = std::move(mask)).data();
  return words;
}

bool StructureRule::accept(uint32_t token) {
  for (const char c : trie_.bytes(token)) state_ = matcher_.step(state_, static_cast<uint8_t>(c));
  if (matcher_.nearly_full() && !matcher_.overflowed()) {
    state_ = matcher_.forget_but(state_);
    masks_.clear();
  }
  return matcher_.may_end(state_) && !matcher_.may_go_on(state_);
}

}  // namespace plow
