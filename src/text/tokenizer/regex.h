// Regular expressions as the library `tokenizers` has them: Oniguruma's default syntax over UTF-8.
//
// Unicode: `tokenizers` 0.23.3 carries Oniguruma 6.9.10, whose classes are those of Unicode 16.0.
// Debian's 6.9.8 knows 14.0. The difference is additions only, so \p{...}, \w and \d get them added
// (unicode_additions.inc) and match alike with both.
//
// Steps are bounded: a hostile expression gives an error, not a hang.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct re_pattern_buffer;

namespace plow {

struct TextSpan {
  size_t begin = 0;
  size_t end = 0;
  bool operator==(const TextSpan&) const = default;
};

class Regex {
 public:
  // Errors: the expression is longer than 64 KiB or not valid; the message has Oniguruma's reason.
  static Result<Regex> compile(std::string_view pattern);

  // All matches from left to right, none overlapping; an empty match right behind the match before it is left
  // out. REQUIRES valid UTF-8. Errors: the search needs more backtracking steps than kStepsPerText +
  // kStepsPerByte * size.
  Status find_all(std::string_view text, std::vector<TextSpan>& out) const;

  // Legitimate pre-tokenizers backtrack a few times a character; a run of n spaces costs n steps once.
  static constexpr size_t kStepsPerText = 20'000'000;
  static constexpr size_t kStepsPerByte = 64;

 private:
  struct Free {
    void operator()(re_pattern_buffer* regex) const;
  };
  explicit Regex(re_pattern_buffer* regex) : regex_(regex) {}

  std::unique_ptr<re_pattern_buffer, Free> regex_;
};

// `pattern` with the code points that Unicode 15.0, 15.1 and 16.0 added put into its classes.
std::string with_newer_code_points(std::string_view pattern);

}  // namespace plow
