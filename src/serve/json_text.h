// JSON text out, piece by piece: what is written for every token of every stream.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plow {

// Appends "text" with quotes; control characters, quotes and backslashes escaped. REQUIRES UTF-8.
void append_json_string(std::string& out, std::string_view text);

// Appends the shortest number that reads back as the same float. JSON has no infinities: they become
// -9999 and 9999, the bound that vLLM writes for logprobs.
void append_json_number(std::string& out, float value);

}  // namespace plow
