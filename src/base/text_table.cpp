#include "base/text_table.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/check.h"

namespace plow {

TextTable::TextTable(std::vector<std::string> headings) : headings_(std::move(headings)) {
  for (auto& heading : headings_) {
    right_.push_back(heading.starts_with('>'));
    if (right_.back()) heading.erase(0, 1);
  }
}

void TextTable::add_row(std::vector<std::string> cells) {
  PLOW_CHECK(cells.size() == headings_.size(), "{} cells in a table of {} columns", cells.size(), headings_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::to_string() const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < headings_.size(); ++c) {
    size_t width = display_width(headings_[c]);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) line += "  ";
      const std::string padding(widths[c] - display_width(cells[c]), ' ');
      line += right_[c] ? padding + cells[c] : cells[c] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line(headings_);
  std::vector<std::string> rules;
  for (const size_t width : widths) rules.emplace_back(width, '-');
  add_line(rules);
  for (const auto& row : rows_) add_line(row);
  return text;
}

std::string format_bytes(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1000.0;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f} B", bytes);
  return fmt::format("{:.{}f} {}", bytes, bytes < 10 ? 2 : 1, kUnits[unit]);
}

std::string format_ns(double nanoseconds) {
  if (nanoseconds < 999.5) return fmt::format("{:.0f} ns", nanoseconds);
  if (nanoseconds < 999.5e3) return fmt::format("{:.2f} us", nanoseconds / 1e3);
  if (nanoseconds < 999.5e6) return fmt::format("{:.2f} ms", nanoseconds / 1e6);
  return fmt::format("{:.2f} s", nanoseconds / 1e9);
}

size_t display_width(std::string_view utf8) {
  size_t width = 0;
  for (size_t i = 0; i < utf8.size(); ++i) {
    const auto byte = static_cast<uint8_t>(utf8[i]);
    if ((byte & 0xc0u) == 0x80u) continue;                 // a continuation byte
    const bool wide = byte >= 0xf0u || (byte >= 0xe3u && byte <= 0xedu);  // emoji; CJK and Hangul
    width += wide ? 2 : 1;
  }
  return width;
}

}  // namespace plow
