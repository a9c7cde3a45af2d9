// UTF-8 and what Python's str knows about characters. All strings inside this folder are valid UTF-8 (checked
// where they enter), so these functions do not test for it again, though none reads out of bounds if it is
// not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plow::jinja {

bool is_valid_utf8(std::string_view bytes);

// Decodes the character at `at` and moves `at` behind it. REQUIRES at < bytes.size().
char32_t next_char(std::string_view bytes, size_t& at);
// Moves `at` to the start of the character before it. REQUIRES at > 0.
char32_t previous_char(std::string_view bytes, size_t& at);
void append_utf8(std::string& out, char32_t c);  // REQUIRES a code point that is not a surrogate

uint32_t count_chars(std::string_view bytes);
// Byte offset of character `index`; bytes.size() when there are not that many.
size_t char_offset(std::string_view bytes, size_t index);

bool is_space(char32_t c);      // str.isspace, and \s in re
bool is_printable(char32_t c);  // what repr does not escape
bool is_cased(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_numeric(char32_t c);
bool is_line_break(char32_t c);  // where str.splitlines cuts

// Full case mappings: one character may become up to three.
void append_upper(std::string& out, char32_t c);
void append_title(std::string& out, char32_t c);
// `text` and `at` (the offset of c) decide between the two small sigmas.
void append_lower(std::string& out, char32_t c, std::string_view text, size_t at);

size_t first_non_space(std::string_view bytes);        // byte offset, size() if all is space
size_t end_of_last_non_space(std::string_view bytes);  // byte offset behind it, 0 if all is space

}  // namespace plow::jinja
