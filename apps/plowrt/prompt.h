// From a conversation to token ids. Text of a message never becomes a control token.
#pragma once

#include "base/error.h"
#include "text/chat_template/chat_template.h"
#include "text/tokenizer/tokenizer.h"

#include <boost/json/array.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace plow {

// Token ids of a rendered template: the tokens of the text of all segments together, but a control token only
// where a trusted segment spells it out. Cutting the text at every border instead would tokenise "user\n" +
// "\nHi" in another way than the model learnt.
Result<std::vector<uint32_t>> encode_segments(const Tokenizer& tokenizer,
                                              std::span<const PromptSegment> segments);

// `messages`: [{"role": ..., "content": ...}, ...]; the template adds what asks for an answer.
Result<std::vector<uint32_t>> encode_chat(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                          const boost::json::array& messages);

}  // namespace plow
