// Strings that know which of their bytes came from the conversation.
#pragma once

#include "text/chat_template/budget.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plow::jinja {

struct ByteRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};

struct Text {
  std::string bytes;            // UTF-8
  std::vector<ByteRange> data;  // what came from the conversation: sorted, disjoint, not touching, none empty
  uint32_t n_chars = 0;         // code points
  bool markup = false;  // made by `safe` or `escape`: markupsafe's Markup, which escapes what is added to it

  bool has_data() const { return !data.empty(); }
};

// The only way strings are made: every byte is appended with its origin.
class TextBuilder {
 public:
  explicit TextBuilder(Budget& budget) : budget_(&budget) {}

  void add(std::string_view bytes, bool data);
  void add(const Text& text) { add(text, 0, text.bytes.size()); }
  // Bytes [begin, end) of `text`.
  void add(const Text& text, size_t begin, size_t end);
  // `bytes` in the place of bytes [begin, end) of `text`: data if any of them is.
  void add_mapped(std::string_view bytes, const Text& text, size_t begin, size_t end);
  void add_repeated(char byte, size_t n);

  size_t size() const { return text_.bytes.size(); }
  std::string_view bytes() const { return text_.bytes; }
  Text finish();

 private:
  void charge(size_t n);
  void mark_data(size_t begin);  // from there to the end

  Budget* budget_;
  Text text_;
};

// Does any byte of [begin, end) come from the conversation?
bool has_data_in(const Text& text, size_t begin, size_t end);

}  // namespace plow::jinja
