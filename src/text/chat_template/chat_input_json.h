// The form in which tests and tools write down what a template is rendered with.
#pragma once

#include "base/error.h"
#include "text/chat_template/chat_template.h"

#include <boost/json/object.hpp>

namespace plow {

// Keys, all but the first optional: messages, tools, documents (any JSON), add_generation_prompt (bool),
// special_tokens and variables (objects), now ([year, month, day, hour, minute, second]). Errors (kInput): a
// key of the wrong type, one that is not known.
Result<ChatInput> chat_input_from_json(const boost::json::object& object);

}  // namespace plow
