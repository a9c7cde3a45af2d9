// Tables for people: columns that align, numbers to the right.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plow {

class TextTable {
 public:
  // A heading that begins with '>' makes its column right-aligned (the '>' is not printed).
  explicit TextTable(std::vector<std::string> headings);

  // REQUIRES as many cells as headings.
  void add_row(std::vector<std::string> cells);

  // One line a row, two spaces between columns, a rule under the headings; ends with a newline.
  std::string to_string() const;

 private:
  std::vector<std::string> headings_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

// "269.0 MB", "1.50 GB": decimal units, as memory bandwidth is quoted.
std::string format_bytes(double bytes);

// "1.25 us", "3.4 ms", "12.0 s".
std::string format_ns(double nanoseconds);

// Columns that a terminal gives to the text (code points; wide East Asian characters count two).
size_t display_width(std::string_view utf8);

}  // namespace plow
