// Properties of code points and normalization forms, each in the Unicode version that the library
// `tokenizers` 0.23.3 has for it. Built on utf8proc, whose version is another; unicode_tables.inc holds the
// differences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace plow {

bool is_white_space(char32_t c);  // White_Space (Rust's char::is_whitespace)
bool is_number(char32_t c);       // Nd, Nl, No in Unicode 17.0 (Rust's char::is_numeric)
bool is_word(char32_t c);         // \w of the regex crate, Unicode 16.0
bool is_mark(char32_t c);         // Mn, Mc, Me in Unicode 9.0

// Of the crate unicode_categories, Unicode 8.0:
bool is_punctuation(char32_t c);      // ASCII punctuation, or P*
bool is_other(char32_t c);            // Cc, Cf, Co
bool is_nonspacing_mark(char32_t c);  // Mn

// The Rust standard library's char::to_lowercase: one code point, but for U+0130.
void append_lowercase(std::string& out, char32_t c);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
// Unicode 9.0: a code point that is newer stays as it is, and nothing moves past it. REQUIRES valid UTF-8.
std::string normalized(std::string_view text, NormalForm form);

// The length of the extended grapheme cluster that `text` begins with (UAX 29; marks up to Unicode 16.0).
// REQUIRES valid UTF-8, not empty.
size_t grapheme_length(std::string_view text);

// What Unicode 15.0 to 16.0 added to a class of regular expressions, as ranges for a bracket expression
// ("\x{897}\x{1c89}-\x{1c8a}"); `name` is a general category, one of the long names of those in use, "han",
// "word", "digit", "any" or "notother", in lower case. Empty when nothing was added, or the class is not
// known.
std::string newer_code_points(std::string_view name);

}  // namespace plow
