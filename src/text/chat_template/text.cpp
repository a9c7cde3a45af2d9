#include "text/chat_template/text.h"

#include "text/chat_template/unicode.h"

#include <algorithm>

namespace plow::jinja {
namespace {

// The first range that ends behind `begin`.
std::vector<ByteRange>::const_iterator first_overlap(const Text& text, size_t begin) {
  return std::partition_point(text.data.begin(), text.data.end(),
                              [begin](const ByteRange& r) { return r.end <= begin; });
}

}  // namespace

bool has_data_in(const Text& text, size_t begin, size_t end) {
  const auto range = first_overlap(text, begin);
  return begin < end && range != text.data.end() && range->begin < end;
}

void TextBuilder::charge(size_t n) {
  budget_->touch(n);
  budget_->memory(n);
  budget_->string_size(text_.bytes.size() + n);
}

void TextBuilder::mark_data(size_t begin) {
  const auto end = static_cast<uint32_t>(text_.bytes.size());
  if (begin == end) return;
  if (!text_.data.empty() && text_.data.back().end == begin) {
    text_.data.back().end = end;
    return;
  }
  budget_->memory(sizeof(ByteRange));
  text_.data.push_back({static_cast<uint32_t>(begin), end});
}

void TextBuilder::add(std::string_view bytes, bool data) {
  charge(bytes.size());
  const size_t begin = text_.bytes.size();
  text_.bytes += bytes;
  if (data) mark_data(begin);
}

void TextBuilder::add(const Text& text, size_t begin, size_t end) {
  for (auto range = first_overlap(text, begin); range != text.data.end() && range->begin < end; ++range) {
    const size_t data_begin = std::max<size_t>(begin, range->begin);
    const size_t data_end = std::min<size_t>(end, range->end);
    add(std::string_view(text.bytes).substr(begin, data_begin - begin), false);
    add(std::string_view(text.bytes).substr(data_begin, data_end - data_begin), true);
    begin = data_end;
  }
  add(std::string_view(text.bytes).substr(begin, end - begin), false);
}

void TextBuilder::add_mapped(std::string_view bytes, const Text& text, size_t begin, size_t end) {
  add(bytes, has_data_in(text, begin, end));
}

void TextBuilder::add_repeated(char byte, size_t n) {
  charge(n);
  text_.bytes.append(n, byte);
}

Text TextBuilder::finish() {
  text_.n_chars = count_chars(text_.bytes);
  Text done = std::move(text_);
  text_ = {};
  return done;
}

}  // namespace plow::jinja
