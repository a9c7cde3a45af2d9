#include "text/encode_segments.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace plow {

namespace {

class SegmentEncoder {
 public:
  explicit SegmentEncoder(const Tokenizer& tokenizer)
      : tokenizer_(tokenizer), specials_(tokenizer.special_spellings()) {}

  Status add(const PromptSegment& segment) {
    if (!segment.trusted) {
      pending_ += segment.text;
      return {};
    }
    std::string_view text = segment.text;
    while (!text.empty()) {
      const std::string_view special = special_at_start(text);
      if (special.empty()) {
        pending_ += text.front();
        text.remove_prefix(1);
        continue;
      }
      PLOW_TRY_STATUS(flush());
      PLOW_TRY_STATUS(encode(special, true));
      text.remove_prefix(special.size());
    }
    return {};
  }

  Result<std::vector<uint32_t>> finish() {
    PLOW_TRY_STATUS(flush());
    return std::move(ids_);
  }

 private:
  std::string_view special_at_start(std::string_view text) const {
    const auto found = std::find_if(specials_.begin(), specials_.end(),
                                    [&](std::string_view s) { return text.starts_with(s); });
    return found == specials_.end() ? std::string_view() : *found;
  }

  Status flush() {
    if (pending_.empty()) return {};
    const std::string text = std::exchange(pending_, {});
    return encode(text, false);
  }

  Status encode(std::string_view text, bool parse_special) {
    PLOW_TRY(const auto ids,
             tokenizer_.encode(text, {.add_special_tokens = false, .parse_special = parse_special}));
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    return {};
  }

  const Tokenizer& tokenizer_;
  std::span<const std::string_view> specials_;
  std::string pending_;  // text since the last control token
  std::vector<uint32_t> ids_;
};

}  // namespace

Result<std::vector<uint32_t>> encode_segments(const Tokenizer& tokenizer,
                                              std::span<const PromptSegment> segments) {
  SegmentEncoder encoder(tokenizer);
  for (const PromptSegment& segment : segments) PLOW_TRY_STATUS(encoder.add(segment));
  return encoder.finish();
}

}  // namespace plow
