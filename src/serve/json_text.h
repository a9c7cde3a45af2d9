// JSON numbers out: what is written for every token of every stream. Strings: base/json_string.h.
#pragma once

#include <string>

namespace plow {

// Appends the shortest number that reads back as the same float. JSON has no infinities: they become
// -9999 and 9999, the bound that vLLM writes for logprobs.
void append_json_number(std::string& out, float value);

}  // namespace plow
