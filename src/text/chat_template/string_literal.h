// The inside of a quoted string in a template: Python's escapes ("unicode-escape").
#pragma once

#include <string>
#include <string_view>

namespace plow::jinja {

// Appends the decoded string to `out`. False, with a reason in `error`, for an escape that Python refuses and
// for those that name what UTF-8 cannot hold (a surrogate) or what needs the table of character names (\N).
bool decode_string_literal(std::string_view inside, std::string& out, std::string& error);

}  // namespace plow::jinja
