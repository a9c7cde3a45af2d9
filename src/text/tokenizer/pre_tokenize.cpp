#include "text/tokenizer/pre_tokenize.h"

#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/normalize.h"
#include "text/tokenizer/unicode.h"
#include "text/tokenizer/utf8.h"

#include <fmt/format.h>

namespace plow {

namespace {

// The expression of GPT-2 (encoder.py), which ByteLevel uses when it splits by itself.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Replaces the pieces by what `find` and the behavior make of each. `find(piece, matches)` returns a Status.
template <class Find>
Status split_pieces(PreTokenized& text, SplitBehavior behavior, bool invert, Find find) {
  std::vector<TextSpan> pieces;
  pieces.reserve(text.pieces.size());
  std::vector<TextSpan> matches;
  for (size_t i = 0; i < text.pieces.size(); ++i) {
    const TextSpan whole = text.pieces[i];
    matches.clear();
    PLOW_TRY_STATUS(find(text.piece(i), matches));
    for (TextSpan& match : matches) match = {match.begin + whole.begin, match.end + whole.begin};
    const size_t before = pieces.size();
    split_at(whole, matches, behavior, invert, pieces);
    if (i == 0 && (pieces.size() == before || pieces[before].begin != whole.begin))
      text.first_is_at_start = false;
  }
  text.pieces = std::move(pieces);
  return {};
}

template <class Predicate>
Status split_characters(PreTokenized& text, SplitBehavior behavior, Predicate is_delimiter) {
  return split_pieces(text, behavior, false,
                      [&](std::string_view piece, std::vector<TextSpan>& matches) -> Status {
                        for (size_t i = 0; i < piece.size();) {
                          const CodePoint c = code_point_at(piece, i);
                          if (is_delimiter(c.value)) matches.push_back({i, i + c.bytes});
                          i += c.bytes;
                        }
                        return {};
                      });
}

Status split_literal(PreTokenized& text, std::string_view needle, SplitBehavior behavior, bool invert) {
  return split_pieces(text, behavior, invert,
                      [&](std::string_view piece, std::vector<TextSpan>& matches) -> Status {
                        find_all_literal(piece, needle, matches);
                        return {};
                      });
}

Status split_regex(PreTokenized& text, const Regex& regex, SplitBehavior behavior, bool invert) {
  return split_pieces(text, behavior, invert, [&](std::string_view piece, std::vector<TextSpan>& matches) {
    return regex.find_all(piece, matches);
  });
}

// Rewrites each piece by `append(out, piece, index)`.
template <class Append>
void rewrite_pieces(PreTokenized& text, Append append) {
  std::string out;
  out.reserve(text.text.size() + text.pieces.size());
  std::vector<TextSpan> pieces;
  pieces.reserve(text.pieces.size());
  for (size_t i = 0; i < text.pieces.size(); ++i) {
    const size_t begin = out.size();
    append(out, text.piece(i), i);
    if (out.size() > begin) pieces.push_back({begin, out.size()});
  }
  text.text = std::move(out);
  text.pieces = std::move(pieces);
}

// \w+|[^\w\s]+: runs of word characters, runs of others, white space removed.
Status split_words(PreTokenized& text) {
  return split_pieces(text, SplitBehavior::kRemoved, true,
                      [](std::string_view piece, std::vector<TextSpan>& matches) -> Status {
                        int previous = 0;
                        for (size_t i = 0; i < piece.size();) {
                          const CodePoint c = code_point_at(piece, i);
                          const int kind = is_word(c.value) ? 1 : is_white_space(c.value) ? 0 : 2;
                          if (kind != 0 && kind == previous) matches.back().end = i + c.bytes;
                          if (kind != 0 && kind != previous) matches.push_back({i, i + c.bytes});
                          previous = kind;
                          i += c.bytes;
                        }
                        return {};
                      });
}

Status split_byte_level(PreTokenized& text, bool add_prefix_space, const std::optional<Regex>& regex) {
  if (add_prefix_space) {
    rewrite_pieces(text, [](std::string& out, std::string_view piece, size_t) {
      if (!piece.starts_with(' ')) out += ' ';
      out += piece;
    });
  }
  if (regex) PLOW_TRY_STATUS(split_regex(text, *regex, SplitBehavior::kIsolated, false));
  rewrite_pieces(text,
                 [](std::string& out, std::string_view piece, size_t) { append_byte_level(out, piece); });
  return {};
}

Status split_metaspace(PreTokenized& text, const ComponentView& c) {
  const auto scheme = static_cast<PrependScheme>(c.a);
  std::vector<TextSpan> spaces;
  rewrite_pieces(text, [&](std::string& out, std::string_view piece, size_t i) {
    spaces.clear();
    find_all_literal(piece, " ", spaces);
    const std::string replaced = replace_spans(piece, spaces, c.content);
    const bool prepend = scheme == PrependScheme::kAlways ||
                         (scheme == PrependScheme::kFirst && i == 0 && text.first_is_at_start);
    if (prepend && !replaced.starts_with(c.content)) out += c.content;
    out += replaced;
  });
  if (c.b == 0) return {};
  return split_literal(text, c.content, SplitBehavior::kMergedWithNext, false);
}

Status split_fixed_length(PreTokenized& text, uint32_t length) {
  return split_pieces(text, SplitBehavior::kIsolated, false,
                      [&](std::string_view piece, std::vector<TextSpan>& matches) -> Status {
                        size_t begin = 0;
                        while (begin < piece.size()) {
                          size_t end = begin;
                          for (uint32_t n = 0; n < length && end < piece.size(); ++n)
                            end += utf8_length(piece[end]);
                          matches.push_back({begin, end});
                          begin = end;
                        }
                        return {};
                      });
}

bool is_pre_tokenizer(ComponentKind kind) {
  return kind >= ComponentKind::kByteLevelSplit && kind <= ComponentKind::kFixedLength;
}

// Fields that are enumerations, and counts that must not be 0, are foreign data too.
bool fields_are_valid(const ComponentView& c) {
  switch (c.kind) {
    case ComponentKind::kSplitString:
      return !c.pattern.empty() && c.a <= static_cast<uint32_t>(SplitBehavior::kContiguous);
    case ComponentKind::kSplitRegex:
    case ComponentKind::kPunctuation:
      return c.a <= static_cast<uint32_t>(SplitBehavior::kContiguous);
    case ComponentKind::kMetaspaceSplit:
      return is_one_character(c.content) && c.a <= static_cast<uint32_t>(PrependScheme::kAlways);
    case ComponentKind::kCharDelimiterSplit:
      return is_one_character(c.content);
    case ComponentKind::kFixedLength:
      return c.a > 0;
    default:
      return true;
  }
}

}  // namespace

Result<PreTokenizer> PreTokenizer::create(std::span<const ComponentView> components) {
  PreTokenizer result;
  for (const ComponentView& component : components) {
    if (!is_pre_tokenizer(component.kind) || !fields_are_valid(component)) {
      return input_error(
          fmt::format("component {} is no valid pre-tokenizer", static_cast<uint32_t>(component.kind)));
    }
    Step step = {component, std::nullopt};
    if (component.kind == ComponentKind::kSplitRegex) {
      PLOW_TRY(step.regex, Regex::compile(component.pattern));
    } else if (component.kind == ComponentKind::kByteLevelSplit && component.b != 0) {
      PLOW_TRY(step.regex, Regex::compile(kGpt2Pattern));
    }
    result.steps_.push_back(std::move(step));
  }
  return result;
}

Status PreTokenizer::apply(PreTokenized& text) const {
  for (const Step& step : steps_) PLOW_TRY_STATUS(apply_step(step, text));
  return {};
}

Status PreTokenizer::apply_step(const Step& step, PreTokenized& text) {
  const ComponentView& c = step.component;
  const auto behavior = static_cast<SplitBehavior>(c.a);
  switch (c.kind) {
    case ComponentKind::kByteLevelSplit:
      return split_byte_level(text, c.a != 0, step.regex);
    case ComponentKind::kSplitString:
      return split_literal(text, c.pattern, behavior, c.b != 0);
    case ComponentKind::kSplitRegex:
      return split_regex(text, *step.regex, behavior, c.b != 0);
    case ComponentKind::kDigits:
      return split_characters(text, c.a != 0 ? SplitBehavior::kIsolated : SplitBehavior::kContiguous,
                              is_number);
    case ComponentKind::kPunctuation:
      return split_characters(text, behavior, is_punctuation);
    case ComponentKind::kWhitespace:
      return split_words(text);
    case ComponentKind::kWhitespaceSplit:
      return split_characters(text, SplitBehavior::kRemoved, is_white_space);
    case ComponentKind::kMetaspaceSplit:
      return split_metaspace(text, c);
    case ComponentKind::kBertSplit:
      PLOW_TRY_STATUS(split_characters(text, SplitBehavior::kRemoved, is_white_space));
      return split_characters(text, SplitBehavior::kIsolated, is_punctuation);
    case ComponentKind::kCharDelimiterSplit:
      return split_literal(text, c.content, SplitBehavior::kRemoved, false);
    case ComponentKind::kFixedLength:
      return split_fixed_length(text, c.a);
    default:
      PLOW_CHECK(false, "create() lets only pre-tokenizers in");
  }
  return {};
}

}  // namespace plow
