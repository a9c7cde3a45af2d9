#include "text/tokenizer/regex.h"

#include "text/tokenizer/unicode.h"
#include "text/tokenizer/utf8.h"

#include <fmt/format.h>
#include <oniguruma.h>

#include <algorithm>
#include <cstdint>

namespace plow {

namespace {

constexpr size_t kMaxPatternBytes = 64 * 1024;

// How deep groups may be nested; Oniguruma's parser is recursive.
constexpr unsigned kMaxGroupNesting = 250;

// Entries of the backtracking stack (about 40 bytes each): so many for any text, and so many a byte of it. A
// greedy loop pushes one entry a character.
constexpr unsigned kStackPerText = 1u << 16;
constexpr unsigned kStackPerByte = 8;

// The number of backtracking steps that a search may take before they are counted against the text's
// allowance.
constexpr unsigned long kFreeSteps = 256;

const OnigUChar* bytes_of(std::string_view text, size_t offset) {
  return reinterpret_cast<const OnigUChar*>(text.data()) + offset;
}

std::string reason(int code, OnigErrorInfo* info) {
  OnigUChar buffer[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int length = onig_error_code_to_str(buffer, code, info);
  return {reinterpret_cast<const char*>(buffer), static_cast<size_t>(std::max(length, 0))};
}

struct FreeRegion {
  void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
};
struct FreeParameters {
  void operator()(OnigMatchParam* parameters) const { onig_free_match_param(parameters); }
};

// A search whose steps count against an allowance. Oniguruma tells only whether a limit was hit, so a search
// that hits its limit is tried again with twice the limit, and pays for what it used.
class BoundedSearch {
 public:
  BoundedSearch(OnigRegex regex, std::string_view text)
      : regex_(regex),
        text_(text),
        allowance_(Regex::kStepsPerText + Regex::kStepsPerByte * text.size()),
        region_(onig_region_new()),
        parameters_(onig_new_match_param()) {
    onig_initialize_match_param(parameters_.get());
    const size_t stack = kStackPerText + kStackPerByte * text.size();
    onig_set_match_stack_limit_size_of_match_param(
        parameters_.get(), static_cast<unsigned>(std::min<size_t>(stack, UINT32_MAX)));
  }

  // The position of the match, ONIG_MISMATCH, or an error code.
  int from(size_t start) {
    for (unsigned long limit = kFreeSteps;; limit *= 2) {
      limit = std::min<unsigned long>(limit, allowance_);
      onig_set_retry_limit_in_match_of_match_param(parameters_.get(), limit);
      onig_set_retry_limit_in_search_of_match_param(parameters_.get(), limit);
      const OnigUChar* end = bytes_of(text_, text_.size());
      const int result = onig_search_with_param(regex_, bytes_of(text_, 0), end, bytes_of(text_, start), end,
                                                region_.get(), ONIG_OPTION_NONE, parameters_.get());
      const bool hit =
          result == ONIGERR_RETRY_LIMIT_IN_MATCH_OVER || result == ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER;
      if (!hit || limit == allowance_) return result;
      allowance_ -= limit;
    }
  }

  TextSpan match() const {
    return {static_cast<size_t>(region_->beg[0]), static_cast<size_t>(region_->end[0])};
  }

 private:
  OnigRegex regex_;
  std::string_view text_;
  unsigned long allowance_;
  std::unique_ptr<OnigRegion, FreeRegion> region_;
  std::unique_ptr<OnigMatchParam, FreeParameters> parameters_;
};

// One class of the pattern, such as \p{L}, with the newer code points in it.
std::string extended_class(std::string_view name, bool negated, std::string_view original) {
  std::string key;
  for (const char c : name) {
    if (c != ' ' && c != '_' && c != '-') key.push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  }
  const char* caret = negated ? "^" : "";
  if (key == "c" || key == "other" || key == "cn" || key == "unassigned") {
    // These were unassigned, so the class loses them.
    const bool keeps_formats = key == "c" || key == "other";
    return fmt::format("[{}{}&&[^{}]]", caret, original,
                       newer_code_points(keeps_formats ? "notother" : "any"));
  }
  const std::string added = newer_code_points(key);
  if (added.empty()) return {};
  return fmt::format("[{}{}{}]", caret, original, added);
}

}  // namespace

std::string with_newer_code_points(std::string_view pattern) {
  std::string out;
  for (size_t i = 0; i < pattern.size();) {
    if (pattern[i] != '\\' || i + 1 == pattern.size()) {
      out.push_back(pattern[i++]);
      continue;
    }
    const char letter = pattern[i + 1];
    size_t length = 2;
    std::string replacement;
    if (letter == 'w' || letter == 'W') replacement = extended_class("word", letter == 'W', "\\w");
    if (letter == 'd' || letter == 'D') replacement = extended_class("digit", letter == 'D', "\\d");
    if ((letter == 'p' || letter == 'P') && pattern.substr(i + 2, 1) == "{") {
      const size_t close = pattern.find('}', i);
      if (close != std::string_view::npos) {
        std::string_view name = pattern.substr(i + 3, close - i - 3);
        length = close + 1 - i;
        const bool caret = name.starts_with('^');
        if (caret) name.remove_prefix(1);
        replacement = extended_class(name, caret != (letter == 'P'), fmt::format("\\p{{{}}}", name));
      }
    }
    out += replacement.empty() ? std::string(pattern.substr(i, length)) : replacement;
    i += length;
  }
  return out;
}

void Regex::Free::operator()(re_pattern_buffer* regex) const { onig_free(regex); }

Result<Regex> Regex::compile(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return input_error(
        fmt::format("a regular expression of {} bytes is longer than {}", pattern.size(), kMaxPatternBytes));
  }
  OnigEncoding encoding = ONIG_ENCODING_UTF8;
  onig_initialize(&encoding, 1);
  onig_set_parse_depth_limit(kMaxGroupNesting);
  const std::string source = with_newer_code_points(pattern);
  OnigRegex regex = nullptr;
  OnigErrorInfo info = {};
  const int code = onig_new(&regex, bytes_of(source, 0), bytes_of(source, source.size()), ONIG_OPTION_NONE,
                            encoding, ONIG_SYNTAX_DEFAULT, &info);
  if (code != ONIG_NORMAL) {
    return input_error(
        fmt::format("the regular expression '{}' is not valid: {}", pattern, reason(code, &info)));
  }
  return Regex(regex);
}

Status Regex::find_all(std::string_view text, std::vector<TextSpan>& out) const {
  BoundedSearch search(regex_.get(), text);
  size_t start = 0;
  size_t last_end = SIZE_MAX;
  while (start <= text.size()) {
    const int result = search.from(start);
    if (result == ONIG_MISMATCH) break;
    if (result < 0) {
      return input_error(fmt::format("a regular expression of the tokenizer failed on a text of {} bytes: {}",
                                     text.size(), reason(result, nullptr)));
    }
    const TextSpan match = search.match();
    if (match.begin == match.end && match.end == last_end) {
      // An empty match right behind the last one: go on one character later.
      start += start < text.size() ? utf8_length(text[start]) : 1;
      continue;
    }
    // \K can move the beginning of a match, but matches never overlap.
    if (match.begin < (last_end == SIZE_MAX ? 0 : last_end) || match.end < start) {
      return input_error("a regular expression of the tokenizer matches backwards");
    }
    out.push_back(match);
    start = last_end = match.end;
  }
  return {};
}

}  // namespace plow
