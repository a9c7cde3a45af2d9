#include "serve/tool_request.h"

#include "grammar/json_grammar.h"
#include "grammar/json_schema.h"
#include "serve/channel_parser.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plow {
namespace {

namespace json = boost::json;
using Expr = Grammar::Expr;

struct Tool {
  std::string name;
  json::value parameters;
};

std::optional<ApiError> read_list(const json::array& list, std::vector<Tool>& tools) {
  if (list.size() > kMostTools)
    return invalid_field("tools",
                         fmt::format("tools has {} tools; up to {} are read.", list.size(), kMostTools));
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string where = fmt::format("tools[{}]", i);
    const json::object* tool = list[i].if_object();
    const json::value* type = tool == nullptr ? nullptr : tool->if_contains("type");
    const json::value* function = tool == nullptr ? nullptr : tool->if_contains("function");
    if (type == nullptr || *type != json::value("function") || function == nullptr || !function->is_object())
      return invalid_field(where, where + " must be {\"type\": \"function\", \"function\": {...}}.");
    const json::value* name = function->get_object().if_contains("name");
    if (name == nullptr || !name->is_string() || name->get_string().empty() || name->get_string().size() > 64)
      return invalid_field(where + ".function.name",
                           where + ".function.name must be a string of 1 to 64 bytes.");
    const json::value* parameters = function->get_object().if_contains("parameters");
    const bool none = parameters == nullptr || parameters->is_null();
    if (!none && !parameters->is_object())
      return invalid_field(where + ".function.parameters",
                           where + ".function.parameters must be a JSON Schema.");
    // Without parameters there is nothing to give.
    json::object schema{{"type", "object"}, {"properties", json::object()}};
    if (!none) schema = parameters->get_object();
    const bool combined = schema.contains("$ref") || schema.contains("anyOf") || schema.contains("oneOf") ||
                          schema.contains("allOf");
    if (!schema.contains("type") && !combined) schema["type"] = "object";
    tools.push_back({std::string(name->get_string()), std::move(schema)});
  }
  return {};
}

// Writes an answer's grammar.
class CallGrammar {
 public:
  CallGrammar(ToolDialect dialect, bool parallel) : dialect_(dialect), parallel_(parallel), json_(grammar_) {}

  // Errors name the tool.
  std::optional<ApiError> add(const Tool& tool, bool strict) {
    // OpenAI's own API takes schemas with keywords that it does not hold the model to unless the tool is
    // strict.
    const Result<Expr> arguments = add_json_schema(grammar_, tool.parameters, {strict});
    if (!arguments.ok())
      return invalid_field("tools",
                           fmt::format("The parameters of {}: {}", tool.name, arguments.error().message));
    const auto pair = [&](const json::value& key, Expr value) {
      return grammar_.sequence({json_.literal(key), json_.colon(), value});
    };
    calls_.push_back(grammar_.sequence(
        {grammar_.literal("{"), json_.blank(), pair("name", json_.literal(json::value(tool.name))),
         json_.comma(), pair(arguments_key(dialect_), *arguments), json_.blank(), grammar_.literal("}")}));
    return {};
  }

  Grammar finish(bool must_call, bool thinks) {
    const Expr call = grammar_.shared(grammar_.choice(calls_));
    Expr all = dialect_ == ToolDialect::kHermes ? hermes(call, must_call) : llama3(call, must_call);
    // Thoughts, when there are any, come first.
    if (must_call && thinks) {
      const Expr then = grammar_.sequence({grammar_.repeat(grammar_.literal("\n"), 0, 2), all});
      all = grammar_.choice({all, text_until("</think>", then, false)});
    }
    grammar_.root = grammar_.new_rule();
    grammar_.define(grammar_.root, all);
    return std::move(grammar_);
  }

 private:
  Expr hermes(Expr call, bool must_call) {
    const Expr body = grammar_.shared(
        grammar_.sequence({json_.blank(), call, json_.blank(), grammar_.literal(kCallEndTag)}));
    const Expr more = grammar_.sequence({json_.blank(), grammar_.literal(kCallTag), body});
    const Expr calls =
        parallel_ ? grammar_.sequence({body, grammar_.repeat(more, 0, Grammar::kNoLimit)}) : body;
    if (must_call) return grammar_.sequence({grammar_.literal(kCallTag), calls});
    return text_until(kCallTag, calls, true);
  }

  // An answer calls or talks; text does not begin as a call does.
  Expr llama3(Expr call, bool must_call) {
    const Expr more = grammar_.sequence({grammar_.literal("; "), call});
    const Expr calls =
        parallel_ ? grammar_.sequence({call, grammar_.repeat(more, 0, Grammar::kNoLimit)}) : call;
    if (must_call) return calls;
    ByteSet any, first;
    any.add_range(0, 255);
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (std::string_view("{ \t\r\n").find(static_cast<char>(byte)) == std::string_view::npos)
        first.add(static_cast<uint8_t>(byte));
    }
    const Expr text = grammar_.sequence(
        {grammar_.bytes(first), grammar_.repeat(grammar_.bytes(any), 0, Grammar::kNoLimit)});
    return grammar_.choice({calls, grammar_.optional(text)});
  }

  // Text up to `tag`, and what follows it: one rule for each part of the tag that the text may end with (the
  // automaton of Knuth, Morris and Pratt, 1977). Without the tag the text may end only where that is allowed.
  Expr text_until(std::string_view tag, Expr then, bool may_end) {
    std::vector<Grammar::Rule> rules;
    for (size_t i = 0; i < tag.size(); ++i) rules.push_back(grammar_.new_rule());
    for (size_t i = 0; i < tag.size(); ++i) {
      std::vector<ByteSet> to(tag.size());  // bytes by how much of the tag is then there
      std::vector<Expr> choices;
      for (unsigned byte = 0; byte < 256; ++byte) {
        const std::string text = std::string(tag.substr(0, i)) + static_cast<char>(byte);
        if (text == tag) {
          choices.push_back(grammar_.sequence({grammar_.literal(text.substr(i)), then}));
        } else {
          to[begun_tag(text, tag)].add(static_cast<uint8_t>(byte));
        }
      }
      for (size_t j = 0; j < tag.size(); ++j) {
        if (!to[j].empty())
          choices.push_back(grammar_.sequence({grammar_.bytes(to[j]), grammar_.use(rules[j])}));
      }
      if (may_end) choices.push_back(grammar_.empty());
      grammar_.define(rules[i], grammar_.choice(choices));
    }
    return grammar_.use(rules[0]);
  }

  const ToolDialect dialect_;
  const bool parallel_;
  Grammar grammar_;
  JsonGrammar json_;
  std::vector<Expr> calls_;
};

// "auto", "none", "required", or the name of a function behind "=".
std::optional<ApiError> read_choice(const FieldReader& fields, bool has_tools, std::string& out) {
  const json::value* choice = fields.find("tool_choice");
  out = has_tools ? "auto" : "none";
  if (choice == nullptr) return {};
  if (choice->is_string()) {
    const std::string_view text = choice->get_string();
    if (text != "auto" && text != "none" && text != "required")
      return invalid_field("tool_choice",
                           "tool_choice must be \"auto\", \"none\", \"required\" or name a function.");
    if (!has_tools && text == "required")
      return invalid_field("tool_choice", "tool_choice asks for a call, and there are no tools.");
    if (has_tools) out = text;
    return {};
  }
  boost::system::error_code error;
  const json::value* name = choice->find_pointer("/function/name", error);
  if (name == nullptr || !name->is_string()) {
    return invalid_field(
        "tool_choice",
        "tool_choice must be a string or {\"type\": \"function\", \"function\": {\"name\": ...}}.");
  }
  out = "=" + std::string(name->get_string());
  return {};
}

bool is_strict(const json::value& tool) {
  boost::system::error_code error;
  const json::value* strict = tool.find_pointer("/function/strict", error);
  return strict != nullptr && strict->is_bool() && strict->get_bool();
}

// The only tool that the answer can begin with, when it must.
std::optional<ApiError> read_channel_tools(const std::vector<Tool>& tools, const std::string& choice,
                                           const ServedModel& model, ToolRequest& out) {
  out.dialect = model.tool_dialect;
  if (choice == "auto") return {};
  const auto is_it = [&](const Tool& tool) { return !out.named || tool.name == choice.substr(1); };
  const auto tool = std::ranges::find_if(tools, is_it);
  if (tool == tools.end())
    return invalid_field("tool_choice", fmt::format("There is no tool {} among the tools.",
                                                    json::serialize(json::value(choice.substr(1)))));
  if (model.tool_dialect == ToolDialect::kGemma || (!out.named && tools.size() > 1)) {
    return unsupported_field("tool_choice",
                             fmt::format("{} cannot be held to {}: use \"auto\".", model.name,
                                         out.named ? "one tool" : "calling one of several tools"));
  }
  out.begin = fmt::format("<|channel|>commentary to=functions.{} <|constrain|>json<|message|>", tool->name);
  Grammar grammar;
  const Result<Expr> arguments = add_json_schema(grammar, tool->parameters, {false});
  if (!arguments.ok())
    return invalid_field("tools",
                         fmt::format("The parameters of {}: {}", tool->name, arguments.error().message));
  grammar.root = grammar.new_rule();
  grammar.define(grammar.root, *arguments);
  const Result<Automaton> automaton = compile_grammar(grammar);
  if (!automaton.ok())
    return invalid_field("tools",
                         fmt::format("The parameters of {}: {}", tool->name, automaton.error().message));
  out.grammar = std::make_shared<const Automaton>(*automaton);
  return {};
}

}  // namespace

std::optional<ApiError> read_tools(const FieldReader& fields, const ServedModel& model, ToolRequest& out) {
  const json::value* list = fields.find("tools");
  std::vector<Tool> tools;
  if (list != nullptr) {
    if (auto error = read_list(list->get_array(), tools)) return error;
  }
  std::string choice;
  if (auto error = read_choice(fields, !tools.empty(), choice)) return error;
  if (choice == "none") return {};
  if (model.tool_dialect == ToolDialect::kNone) {
    return unsupported_field(
        "tools", fmt::format("The chat template of {} knows no way to call tools that this server "
                             "reads (those of Hermes and Qwen, Llama 3, GPT-OSS and Gemma 4).",
                             model.name));
  }
  out.for_template = list == nullptr ? json::value() : *list;
  out.named = choice[0] == '=';
  if (has_channels(model.tool_dialect)) return read_channel_tools(tools, choice, model, out);
  CallGrammar grammar(model.tool_dialect, !out.named && fields.boolean("parallel_tool_calls").value_or(true));
  bool any = false;
  for (size_t i = 0; i < tools.size(); ++i) {
    if (out.named && tools[i].name != choice.substr(1)) continue;
    any = true;
    if (auto error = grammar.add(tools[i], is_strict(list->get_array()[i]))) return error;
  }
  if (!any)
    return invalid_field("tool_choice", fmt::format("There is no tool {} among the tools.",
                                                    json::serialize(json::value(choice.substr(1)))));
  const Result<Automaton> automaton = compile_grammar(grammar.finish(choice != "auto", model.thinks));
  if (!automaton.ok())
    return invalid_field("tools", fmt::format("The tools' parameters: {}", automaton.error().message));
  out.grammar = std::make_shared<const Automaton>(*automaton);
  out.dialect = model.tool_dialect;
  return {};
}

}  // namespace plow
