// int("...") and float("...") of Python.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace plow::jinja {

// Throws Failure for an integer beyond 64 bits; nothing when the text is no integer in the base.
std::optional<int64_t> parse_integer(std::string_view text, int64_t base);
std::optional<double> parse_real(std::string_view text);

}  // namespace plow::jinja
