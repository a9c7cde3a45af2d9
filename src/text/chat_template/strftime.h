// Python's datetime.strftime in the C locale, for a time without a zone.
#pragma once

#include "text/chat_template/chat_template.h"

#include <string>
#include <string_view>

namespace plow::jinja {

// Throws Failure for a directive that is not known, and for a time that no calendar has.
std::string format_time(const LocalTime& time, std::string_view format);

}  // namespace plow::jinja
