// The tools of a request: read and checked, and as a grammar of the answers that may call them. An answer
// with tools is always held to this grammar, so that every call is of a tool that is there and has arguments
// that its schema accepts. Where answers are in marked parts (channel_parser.h) there is no such grammar,
// since marks are control tokens; then a call is the model's own, unless Harmony's one tool must be called.
#pragma once

#include "grammar/automaton.h"
#include "serve/api_error.h"
#include "serve/fields.h"
#include "serve/served_model.h"
#include "serve/tool_calls.h"

#include <boost/json/value.hpp>

#include <memory>
#include <optional>

namespace plow {

struct ToolRequest {
  ToolDialect dialect = ToolDialect::kNone;  // kNone: the answer calls nothing
  bool named = false;                        // one tool was named: OpenAI then ends with "stop"
  boost::json::value for_template;           // null: none are shown
  std::shared_ptr<const Automaton> grammar;  // null: calls are left to the model
  std::string begin;                         // what the answer begins with
};

constexpr size_t kMostTools = 128;  // as in OpenAI's API

// Errors: tools or tool_choice of a wrong shape, a schema that is not supported, a model whose template knows
// no tools.
std::optional<ApiError> read_tools(const FieldReader& fields, const ServedModel& model, ToolRequest& out);

}  // namespace plow
