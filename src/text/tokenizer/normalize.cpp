#include "text/tokenizer/normalize.h"

#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/unicode.h"
#include "text/tokenizer/utf8.h"

#include <fmt/format.h>

namespace plow {

namespace {

// Calls `append(out, code point)` for each character; what it appends is the new text.
template <class Append>
std::string map_characters(std::string_view text, Append append) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    append(out, c.value);
    i += c.bytes;
  }
  return out;
}

// The code points that sentencepiece's "nmt" normalization drops or makes spaces of (normalizers/unicode.rs
// of `tokenizers`).
void append_nmt(std::string& out, char32_t c) {
  const bool dropped =
      (c >= 0x1 && c <= 0x8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f;
  if (dropped) return;
  const bool space = c == 0x9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
                     (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                     c == 0xfeff || c == 0xfffd;
  append_utf8(out, space ? U' ' : c);
}

// The CJK ideographs that BERT's tokenizer sets apart (normalizers/bert.rs, with its gap before U+2B920).
bool is_bert_chinese(char32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
         (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

void append_bert_clean(std::string& out, char32_t c) {
  const bool line = c == '\t' || c == '\n' || c == '\r';
  if (c == 0 || c == 0xfffd || (!line && is_other(c))) return;
  append_utf8(out, line || is_white_space(c) ? U' ' : c);
}

std::string bert_normalized(std::string text, uint32_t flags) {
  if (flags & kBertCleanText) text = map_characters(text, append_bert_clean);
  if (flags & kBertChineseChars) {
    text = map_characters(text, [](std::string& out, char32_t c) {
      const bool chinese = is_bert_chinese(c);
      if (chinese) out += ' ';
      append_utf8(out, c);
      if (chinese) out += ' ';
    });
  }
  if (flags & kBertStripAccents) {
    text = map_characters(normalized(text, NormalForm::kNfd), [](std::string& out, char32_t c) {
      if (!is_nonspacing_mark(c)) append_utf8(out, c);
    });
  }
  if (flags & kBertLowercase) text = map_characters(text, append_lowercase);
  return text;
}

void strip_white_space(std::string& text, bool left, bool right, bool& lost_front) {
  size_t begin = 0;
  size_t end = text.size();
  while (left && begin < end && is_white_space(code_point_at(text, begin).value))
    begin += utf8_length(text[begin]);
  while (right && end > begin) {
    const CodePoint c = code_point_before(text, end);
    if (!is_white_space(c.value)) break;
    end -= c.bytes;
  }
  lost_front |= begin > 0;
  text = text.substr(begin, end - begin);
}

// How many times longer normalizers may make a text. Compatibility forms make it 11 times longer at most
// (U+FDFA); the limit stops a chain of replacements that doubles the text again and again.
constexpr size_t kMaxGrowth = 256;

Error grew_too_much(size_t limit) {
  return input_error(
      fmt::format("the normalizers of the tokenizer make the text longer than {} bytes", limit));
}

bool is_normalizer(ComponentKind kind) {
  return kind >= ComponentKind::kNfc && kind <= ComponentKind::kByteLevelNormalizer;
}

}  // namespace

void find_all_literal(std::string_view text, std::string_view needle, std::vector<TextSpan>& out) {
  if (needle.empty()) return;
  for (size_t at = text.find(needle); at != std::string_view::npos;
       at = text.find(needle, at + needle.size())) {
    out.push_back({at, at + needle.size()});
  }
}

std::string replace_spans(std::string_view text, std::span<const TextSpan> matches,
                          std::string_view content) {
  std::string out;
  out.reserve(text.size());
  size_t done = 0;
  for (const TextSpan& match : matches) {
    out += text.substr(done, match.begin - done);
    out += content;
    done = match.end;
  }
  out += text.substr(done);
  return out;
}

Result<Normalizer> Normalizer::create(std::span<const ComponentView> components) {
  Normalizer normalizer;
  for (const ComponentView& component : components) {
    if (!is_normalizer(component.kind)) {
      return input_error(fmt::format("component {} is no normalizer", static_cast<uint32_t>(component.kind)));
    }
    Step step = {component, {}};
    if (component.kind == ComponentKind::kReplaceRegex) {
      PLOW_TRY(step.helper, Regex::compile(component.pattern));
    } else if (component.kind == ComponentKind::kPrecompiled) {
      PLOW_TRY(step.helper, Charsmap::open(component.content));
    }
    normalizer.steps_.push_back(std::move(step));
  }
  return normalizer;
}

Status Normalizer::apply(std::string& text, bool& lost_front) const {
  std::vector<TextSpan> matches;
  const size_t limit = kMaxGrowth * (text.size() + 1024);
  for (const Step& step : steps_) {
    const ComponentView& c = step.component;
    switch (c.kind) {
      case ComponentKind::kNfc:
        text = normalized(text, NormalForm::kNfc);
        break;
      case ComponentKind::kNfd:
        text = normalized(text, NormalForm::kNfd);
        break;
      case ComponentKind::kNfkc:
        text = normalized(text, NormalForm::kNfkc);
        break;
      case ComponentKind::kNfkd:
        text = normalized(text, NormalForm::kNfkd);
        break;
      case ComponentKind::kLowercase:
        text = map_characters(text, append_lowercase);
        break;
      case ComponentKind::kStripWhitespace:
        strip_white_space(text, c.a != 0, c.b != 0, lost_front);
        break;
      case ComponentKind::kStripAccents:
        text = map_characters(text, [](std::string& out, char32_t x) {
          if (!is_mark(x)) append_utf8(out, x);
        });
        break;
      case ComponentKind::kReplaceString:
      case ComponentKind::kReplaceRegex:
        matches.clear();
        if (const auto* regex = std::get_if<Regex>(&step.helper)) {
          PLOW_TRY_STATUS(regex->find_all(text, matches));
        } else {
          find_all_literal(text, c.pattern, matches);
        }
        if (text.size() + matches.size() * c.content.size() > limit) return grew_too_much(limit);
        lost_front |= c.content.empty() && !matches.empty() && matches[0].begin == 0 && matches[0].end > 0;
        text = replace_spans(text, matches, c.content);
        break;
      case ComponentKind::kPrepend:
        if (!text.empty()) text.insert(0, c.content);
        break;
      case ComponentKind::kNmt:
        text = map_characters(text, append_nmt);
        break;
      case ComponentKind::kPrecompiled:
        text = std::get<Charsmap>(step.helper).apply(text);
        break;
      case ComponentKind::kBertNormalizer:
        text = bert_normalized(std::move(text), c.a);
        break;
      case ComponentKind::kByteLevelNormalizer: {
        std::string out;
        append_byte_level(out, text);
        text = std::move(out);
        break;
      }
      default:
        PLOW_CHECK(false, "create() lets only normalizers in");
    }
    if (text.size() > limit) return grew_too_much(limit);
  }
  return {};
}

}  // namespace plow
