// From a conversation to token ids. Text of a message never becomes a control token.
#pragma once

#include "base/error.h"
#include "text/chat_template/chat_template.h"
#include "text/tokenizer/tokenizer.h"

#include <boost/json/array.hpp>

#include <cstdint>
#include <vector>

namespace plow {

// `messages`: [{"role": ..., "content": ...}, ...]; the template adds what asks for an answer.
Result<std::vector<uint32_t>> encode_chat(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                          const boost::json::array& messages);

// Now, where this machine is.
LocalTime local_time();

}  // namespace plow
