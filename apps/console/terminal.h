// What the stream that we print on is: a terminal of some width, with or without colours, or a file.
#pragma once

#include <string>
#include <string_view>

namespace plow {

struct Terminal {
  bool interactive = false;  // a person looks at it: bars and prompts make sense
  bool colour = false;       // never when NO_COLOR is set (no-color.org) or TERM is "dumb"
  int width = 80;            // columns

  // Of the file descriptor `fd` of this process. COLUMNS wins over what the terminal says.
  static Terminal of(int fd);

  // `text` between the escape sequences of the style, or as it is when the terminal has no colours.
  std::string bold(std::string_view text) const;
  std::string dim(std::string_view text) const;
  std::string red(std::string_view text) const;
};

}  // namespace plow
