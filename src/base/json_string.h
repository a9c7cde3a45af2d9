// A JSON string out (RFC 8259, section 7), for who writes JSON piece by piece.
#pragma once

#include <string>
#include <string_view>

namespace plow {

// Appends "text" with quotes; control characters, quotes and backslashes escaped. REQUIRES UTF-8.
void append_json_string(std::string& out, std::string_view text);

}  // namespace plow
