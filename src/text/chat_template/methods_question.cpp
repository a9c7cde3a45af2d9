// Methods of str that ask something of all characters: isdigit and its kind.
#include "text/chat_template/builtins.h"
#include "text/chat_template/runtime.h"
#include "text/chat_template/unicode.h"

#include <algorithm>

namespace plow::jinja {
namespace {

// True when there are characters and each is one.
Value all_are(Runtime& rt, const Value& self, bool (*wanted)(char32_t)) {
  const std::string_view bytes = rt.heap.bytes(self);
  rt.budget.touch(bytes.size());
  for (size_t at = 0; at < bytes.size();) {
    if (!wanted(next_char(bytes, at))) return boolean(false);
  }
  return boolean(!bytes.empty());
}

bool is_alnum(char32_t c) { return is_alpha(c) || is_numeric(c); }
// Decimals, superscripts and circled digits: isdigit's Numeric_Type=Digit, below 0x3000.
bool is_digit(char32_t c) {
  return is_decimal(c) || c == 0xb2 || c == 0xb3 || c == 0xb9 || (c >= 0x2070 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468) || (c >= 0x2474 && c <= 0x247c) ||
         (c >= 0x2488 && c <= 0x2490);
}
bool is_ascii(char32_t c) { return c < 0x80; }

Value isalpha(Runtime& rt, const Value& self, Arguments&) { return all_are(rt, self, is_alpha); }
Value isalnum(Runtime& rt, const Value& self, Arguments&) { return all_are(rt, self, is_alnum); }
Value isdigit(Runtime& rt, const Value& self, Arguments&) { return all_are(rt, self, is_digit); }
Value isdecimal(Runtime& rt, const Value& self, Arguments&) { return all_are(rt, self, is_decimal); }
Value isnumeric(Runtime& rt, const Value& self, Arguments&) { return all_are(rt, self, is_numeric); }
Value isspace(Runtime& rt, const Value& self, Arguments&) { return all_are(rt, self, is_space); }
Value isascii(Runtime& rt, const Value& self, Arguments&) {
  return boolean(rt.heap.bytes(self).empty() || all_are(rt, self, is_ascii).boolean);
}
Value isprintable(Runtime& rt, const Value& self, Arguments&) {
  return boolean(rt.heap.bytes(self).empty() || all_are(rt, self, is_printable).boolean);
}
Value islower(Runtime& rt, const Value& self, Arguments& args) {
  return find_test("lower")->function(rt, self, args);
}
Value isupper(Runtime& rt, const Value& self, Arguments& args) {
  return find_test("upper")->function(rt, self, args);
}

Value isidentifier(Runtime& rt, const Value& self, Arguments&) {
  const std::string_view bytes = rt.heap.bytes(self);
  rt.budget.touch(bytes.size());
  for (size_t at = 0; at < bytes.size();) {
    const bool at_start = at == 0;
    const char32_t c = next_char(bytes, at);
    if (c != '_' && !is_alpha(c) && (at_start || !is_decimal(c))) return boolean(false);
  }
  return boolean(!bytes.empty());
}

// Upper case begins every run of cased characters and occurs nowhere else.
Value istitle(Runtime& rt, const Value& self, Arguments&) {
  const std::string_view bytes = rt.heap.bytes(self);
  rt.budget.touch(bytes.size());
  bool in_word = false;
  bool any = false;
  for (size_t at = 0; at < bytes.size();) {
    const char32_t c = next_char(bytes, at);
    if (is_lower(c) ? !in_word : is_cased(c) && in_word) return boolean(false);
    in_word = is_cased(c);
    any |= in_word;
  }
  return boolean(any);
}

constexpr Builtin kMethods[] = {
    {"isalnum", "/", isalnum},     {"isalpha", "/", isalpha},     {"isascii", "/", isascii},
    {"isdecimal", "/", isdecimal}, {"isdigit", "/", isdigit},     {"isidentifier", "/", isidentifier},
    {"islower", "/", islower},     {"isnumeric", "/", isnumeric}, {"isprintable", "/", isprintable},
    {"isspace", "/", isspace},     {"istitle", "/", istitle},     {"isupper", "/", isupper},
};

}  // namespace

std::span<const Builtin> string_question_methods() { return kMethods; }

}  // namespace plow::jinja
