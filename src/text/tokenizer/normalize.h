// The normalizers of a tokenizer, run one after the other on a stretch of text between added tokens.
#pragma once

#include "base/error.h"
#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/component.h"
#include "text/tokenizer/regex.h"

#include <span>
#include <string>
#include <variant>
#include <vector>

namespace plow {

class Normalizer {
 public:
  // The strings that `components` name must stay. Errors: a component that is no normalizer, a bad regular
  // expression or charsmap.
  static Result<Normalizer> create(std::span<const ComponentView> components);

  // REQUIRES valid UTF-8 in `text`. Sets `lost_front` when characters at the beginning of the text are gone
  // (Metaspace asks). Errors: a regular expression took too many steps.
  Status apply(std::string& text, bool& lost_front) const;

  bool empty() const { return steps_.empty(); }

 private:
  struct Step {
    ComponentView component;
    std::variant<std::monostate, Regex, Charsmap> helper;
  };
  std::vector<Step> steps_;
};

// Every match of a literal string, from left to right; of an empty string none.
void find_all_literal(std::string_view text, std::string_view needle, std::vector<TextSpan>& out);

// `text` with the spans `matches`, which are in order, replaced by `content`.
std::string replace_spans(std::string_view text, std::span<const TextSpan> matches, std::string_view content);

}  // namespace plow
