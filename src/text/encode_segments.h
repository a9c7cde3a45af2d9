// From a rendered chat template to token ids. Text of a message never becomes a control token.
#pragma once

#include "base/error.h"
#include "text/chat_template/chat_template.h"
#include "text/tokenizer/tokenizer.h"

#include <cstdint>
#include <span>
#include <vector>

namespace plow {

// Token ids of a rendered template: the tokens of the text of all segments together, but a control token only
// where a trusted segment spells it out. Cutting the text at every border instead would tokenise "user\n" +
// "\nHi" in another way than the model learnt.
Result<std::vector<uint32_t>> encode_segments(const Tokenizer& tokenizer,
                                              std::span<const PromptSegment> segments);

}  // namespace plow
