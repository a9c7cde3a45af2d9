// The pre-tokenizers of a tokenizer: they cut a stretch of normalized text into the pieces that the model
// sees one by one.
#pragma once

#include "base/error.h"
#include "text/tokenizer/component.h"
#include "text/tokenizer/regex.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

// A text and the pieces it is cut into, which are in order and not empty. What lies between pieces was
// removed.
struct PreTokenized {
  std::string text;
  std::vector<TextSpan> pieces;
  // True when the first piece begins where the whole input began: Metaspace with the scheme "first" asks.
  bool first_is_at_start = false;

  std::string_view piece(size_t i) const {
    return std::string_view(text).substr(pieces[i].begin, pieces[i].end - pieces[i].begin);
  }
};

class PreTokenizer {
 public:
  // The strings that `components` name must stay. Errors: a component that is no pre-tokenizer, a bad regular
  // expression.
  static Result<PreTokenizer> create(std::span<const ComponentView> components);

  // REQUIRES valid UTF-8. Errors: a regular expression took too many steps.
  Status apply(PreTokenized& text) const;

 private:
  struct Step {
    ComponentView component;
    std::optional<Regex> regex;
  };
  static Status apply_step(const Step& step, PreTokenized& text);

  std::vector<Step> steps_;
};

// Cuts [begin, end) at `matches` (in order, inside it) as the behavior says, and appends the pieces that are
// not empty. `invert`: the matches are the text between the delimiters.
void split_at(TextSpan whole, std::span<const TextSpan> matches, SplitBehavior behavior, bool invert,
              std::vector<TextSpan>& out);

}  // namespace plow
