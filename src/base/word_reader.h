// Reads the line-and-word texts in which the stages print their products. A word that is not what was expected makes the reader bad and gives
// zero; the caller asks ok() once a line.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

namespace plow {

class LineReader {
 public:
  explicit LineReader(std::string_view text) : rest_(text) {}

  // Moves to the next line; false at the end of the text.
  bool next() {
    if (rest_.empty()) return false;
    const size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
    return true;
  }
  std::string_view line() const { return line_; }

 private:
  std::string_view rest_;
  std::string_view line_;
};

class WordReader {
 public:
  explicit WordReader(std::string_view line) : line_(line), rest_(line) {}

  bool ok() const { return ok_; }
  std::string_view line() const { return line_; }
  bool more() {
    skip_spaces();
    return ok_ && !rest_.empty();
  }

  std::string_view word() {
    skip_spaces();
    const std::string_view result = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(result.size());
    return result;
  }
  // A word whose last character may be `mark` (which is not part of it).
  std::string_view word_before(char mark) {
    std::string_view text = word();
    if (text.ends_with(mark)) text.remove_suffix(1);
    return text;
  }
  void expect(std::string_view text) { ok_ &= word() == text; }

  uint32_t number() { return parse<uint32_t>(word()); }
  uint32_t number_before(char mark) { return parse<uint32_t>(word_before(mark)); }
  uint32_t number_after(char mark) {
    std::string_view text = word();
    ok_ &= text.starts_with(mark);
    if (ok_) text.remove_prefix(1);
    return parse<uint32_t>(text);
  }
  uint64_t number64() { return parse<uint64_t>(word()); }
  double real() { return parse<double>(word()); }

 private:
  void skip_spaces() {
    const size_t first = rest_.find_first_not_of(' ');
    rest_.remove_prefix(first == std::string_view::npos ? rest_.size() : first);
  }
  template <class T>
  T parse(std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    ok_ &= error == std::errc{} && end == text.data() + text.size();
    return ok_ ? value : T{};
  }

  std::string_view line_;
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace plow
