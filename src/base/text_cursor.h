// A cursor on text of a fixed form. What is not as expected makes it bad and gives a default; the reader asks
// ok() where it can say where that was.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace plow {

class TextCursor {
 public:
  TextCursor() = default;
  explicit TextCursor(std::string_view text) : rest_(text) {}

  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  void fail() { ok_ = false; }

  // The next `n` bytes, or as many as there are.
  std::string_view take(size_t n) {
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  // True, and goes on, when the text comes next.
  bool accept(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail();
  }

  template <class T>
  T number() {
    T value{};
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{}) {
      fail();
      return T{};
    }
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }
  template <class T>
  T field(std::string_view name) {  // " name=VALUE"
    expect(" ");
    expect(name);
    expect("=");
    return number<T>();
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace plow
