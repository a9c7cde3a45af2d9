// How a text is cut at delimiters: NormalizedString::split of `tokenizers`, all behaviors.
#include "text/tokenizer/pre_tokenize.h"

#include <algorithm>

namespace plow {

namespace {

struct Part {
  TextSpan span;
  bool is_delimiter;
};

// The whole of `whole` as alternating text and delimiters.
std::vector<Part> parts_of(TextSpan whole, std::span<const TextSpan> matches, bool invert) {
  std::vector<Part> parts;
  parts.reserve(2 * matches.size() + 1);
  size_t done = whole.begin;
  for (const TextSpan& match : matches) {
    if (done < match.begin) parts.push_back({{done, match.begin}, invert});
    parts.push_back({match, !invert});
    done = match.end;
  }
  if (done < whole.end) parts.push_back({{done, whole.end}, invert});
  return parts;
}

// Joins each delimiter that follows no delimiter to the part before it.
std::vector<TextSpan> merged_with_previous(std::span<const Part> parts) {
  std::vector<TextSpan> spans;
  bool previous = false;
  for (const Part& part : parts) {
    if (part.is_delimiter && !previous && !spans.empty()) {
      spans.back().end = part.span.end;
    } else {
      spans.push_back(part.span);
    }
    previous = part.is_delimiter;
  }
  return spans;
}

std::vector<TextSpan> merged_with_next(std::span<const Part> parts) {
  std::vector<TextSpan> spans;
  bool previous = false;
  for (size_t i = parts.size(); i-- > 0;) {
    const Part& part = parts[i];
    if (part.is_delimiter && !previous && !spans.empty()) {
      spans.back().begin = part.span.begin;
    } else {
      spans.push_back(part.span);
    }
    previous = part.is_delimiter;
  }
  std::reverse(spans.begin(), spans.end());
  return spans;
}

std::vector<TextSpan> contiguous(std::span<const Part> parts) {
  std::vector<TextSpan> spans;
  bool previous = false;
  for (const Part& part : parts) {
    if (part.is_delimiter == previous && !spans.empty()) {
      spans.back().end = part.span.end;
    } else {
      spans.push_back(part.span);
    }
    previous = part.is_delimiter;
  }
  return spans;
}

}  // namespace

void split_at(TextSpan whole, std::span<const TextSpan> matches, SplitBehavior behavior, bool invert,
              std::vector<TextSpan>& out) {
  const auto append = [&](const TextSpan& span) {
    if (span.begin < span.end) out.push_back(span);
  };
  if (matches.empty() && !invert) {
    append(whole);
    return;
  }
  const std::vector<Part> parts = parts_of(whole, matches, invert);
  switch (behavior) {
    case SplitBehavior::kRemoved:
      for (const Part& part : parts) {
        if (!part.is_delimiter) append(part.span);
      }
      break;
    case SplitBehavior::kIsolated:
      for (const Part& part : parts) append(part.span);
      break;
    case SplitBehavior::kMergedWithPrevious:
      for (const TextSpan& span : merged_with_previous(parts)) append(span);
      break;
    case SplitBehavior::kMergedWithNext:
      for (const TextSpan& span : merged_with_next(parts)) append(span);
      break;
    case SplitBehavior::kContiguous:
      for (const TextSpan& span : contiguous(parts)) append(span);
      break;
  }
}

}  // namespace plow
