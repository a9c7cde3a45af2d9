// Normalizers, pre-tokenizers, decoders and post-processors of tokenizer.json, by their "type" (the modules
// of those names in `tokenizers`). Fields that change only offsets (trim_offsets) are not read; fields
// without a default there are required here.
#include "text/tokenizer/parse_json.h"
#include "text/tokenizer/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace plow {

namespace {

// How deep sequences may be nested. Published files nest once.
constexpr int kMaxNesting = 16;

Result<std::string> required_string(const JsonElement& value, std::string_view key) {
  PLOW_TRY(const JsonElement field, value.at(key));
  PLOW_TRY(const std::string_view text, field.string());
  return std::string(text);
}

Result<std::string> required_character(const JsonElement& value, std::string_view key) {
  PLOW_TRY(const JsonElement field, value.at(key));
  PLOW_TRY(const std::string_view text, field.string());
  if (!is_one_character(text)) return field.error("must be one character");
  return std::string(text);
}

Result<bool> required_boolean(const JsonElement& value, std::string_view key) {
  PLOW_TRY(const JsonElement field, value.at(key));
  return field.boolean();
}

Result<uint32_t> required_count(const JsonElement& value, std::string_view key) {
  PLOW_TRY(const JsonElement field, value.at(key));
  PLOW_TRY(const uint64_t count, field.number());
  if (count > UINT32_MAX) return field.error(fmt::format("{} is too large", count));
  return static_cast<uint32_t>(count);
}

Result<std::string> component_type(const JsonElement& value) { return required_string(value, "type"); }

// {"String": "..."} or {"Regex": "..."}: the pattern, and which of the two kinds it makes.
Status parse_pattern(const JsonElement& value, ComponentKind string_kind, ComponentKind regex_kind,
                     Component& out) {
  PLOW_TRY(const JsonElement pattern, value.at("pattern"));
  if (pattern.find("String")) {
    out.kind = string_kind;
    PLOW_TRY(out.pattern, required_string(pattern, "String"));
    if (out.pattern.empty()) return pattern.error("an empty string matches everywhere and is not supported");
  } else if (pattern.find("Regex")) {
    out.kind = regex_kind;
    PLOW_TRY(out.pattern, required_string(pattern, "Regex"));
  } else {
    return pattern.error("must have a field 'String' or 'Regex'");
  }
  return {};
}

Result<uint32_t> parse_behavior(const JsonElement& value) {
  PLOW_TRY(const std::string_view name, value.string());
  if (name == "Removed") return static_cast<uint32_t>(SplitBehavior::kRemoved);
  if (name == "Isolated") return static_cast<uint32_t>(SplitBehavior::kIsolated);
  if (name == "MergedWithPrevious") return static_cast<uint32_t>(SplitBehavior::kMergedWithPrevious);
  if (name == "MergedWithNext") return static_cast<uint32_t>(SplitBehavior::kMergedWithNext);
  if (name == "Contiguous") return static_cast<uint32_t>(SplitBehavior::kContiguous);
  return value.error(fmt::format("the split behavior '{}' is not known", name));
}

// Metaspace is a pre-tokenizer and a decoder with the same fields.
Status parse_metaspace(const JsonElement& value, Component& out) {
  PLOW_TRY(out.content, required_character(value, "replacement"));
  PLOW_TRY(const std::string scheme, value.string_or("prepend_scheme", "always"));
  auto prepend = PrependScheme::kAlways;
  if (scheme == "first") {
    prepend = PrependScheme::kFirst;
  } else if (scheme == "never") {
    prepend = PrependScheme::kNever;
  } else if (scheme != "always") {
    return value.error(fmt::format("the prepend_scheme '{}' is not known", scheme));
  }
  // The older field; where it is false the newer one must agree.
  PLOW_TRY(const bool add_prefix_space, value.boolean_or("add_prefix_space", true));
  if (!add_prefix_space && value.find("prepend_scheme") && prepend != PrependScheme::kNever) {
    return value.error("add_prefix_space is false, which contradicts prepend_scheme");
  }
  out.a = static_cast<uint32_t>(add_prefix_space ? prepend : PrependScheme::kNever);
  PLOW_TRY(const bool split, value.boolean_or("split", true));
  out.b = split;
  return {};
}

Result<std::string> decode_base64(const JsonElement& value, std::string_view text) {
  const auto digit = [](char c) -> int {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
  };
  std::string bytes;
  uint32_t bits = 0;
  int held = 0;
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  for (const char c : text) {
    const int d = digit(c);
    if (d < 0) return value.error("is not base64");
    bits = bits << 6 | static_cast<uint32_t>(d);
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes.push_back(static_cast<char>(bits >> held & 0xff));
    }
  }
  return bytes;
}

Status parse_bert_normalizer(const JsonElement& value, Component& out) {
  PLOW_TRY(const bool clean, required_boolean(value, "clean_text"));
  PLOW_TRY(const bool chinese, required_boolean(value, "handle_chinese_chars"));
  PLOW_TRY(const bool lowercase, required_boolean(value, "lowercase"));
  PLOW_TRY(const bool accents, value.boolean_or("strip_accents", lowercase));
  out.kind = ComponentKind::kBertNormalizer;
  out.a = (clean ? kBertCleanText : 0u) | (chinese ? kBertChineseChars : 0u) |
          (accents ? kBertStripAccents : 0u) | (lowercase ? kBertLowercase : 0u);
  return {};
}

Status parse_one_normalizer(const JsonElement& value, const std::string& type, Component& out) {
  if (type == "NFC") {
    out.kind = ComponentKind::kNfc;
  } else if (type == "NFD") {
    out.kind = ComponentKind::kNfd;
  } else if (type == "NFKC") {
    out.kind = ComponentKind::kNfkc;
  } else if (type == "NFKD") {
    out.kind = ComponentKind::kNfkd;
  } else if (type == "Lowercase") {
    out.kind = ComponentKind::kLowercase;
  } else if (type == "StripAccents") {
    out.kind = ComponentKind::kStripAccents;
  } else if (type == "Nmt") {
    out.kind = ComponentKind::kNmt;
  } else if (type == "ByteLevel") {
    out.kind = ComponentKind::kByteLevelNormalizer;
  } else if (type == "BertNormalizer") {
    return parse_bert_normalizer(value, out);
  } else if (type == "Strip") {
    out.kind = ComponentKind::kStripWhitespace;
    PLOW_TRY(out.a, required_boolean(value, "strip_left"));
    PLOW_TRY(out.b, required_boolean(value, "strip_right"));
  } else if (type == "Prepend") {
    out.kind = ComponentKind::kPrepend;
    PLOW_TRY(out.content, required_string(value, "prepend"));
  } else if (type == "Replace") {
    PLOW_TRY_STATUS(parse_pattern(value, ComponentKind::kReplaceString, ComponentKind::kReplaceRegex, out));
    PLOW_TRY(out.content, required_string(value, "content"));
  } else if (type == "Precompiled") {
    out.kind = ComponentKind::kPrecompiled;
    PLOW_TRY(const JsonElement charsmap, value.at("precompiled_charsmap"));
    PLOW_TRY(const std::string_view base64, charsmap.string());
    PLOW_TRY(out.content, decode_base64(charsmap, base64));
  } else {
    return value.error(fmt::format("the normalizer '{}' is not supported", type));
  }
  return {};
}

Status parse_one_pre_tokenizer(const JsonElement& value, const std::string& type, Component& out) {
  if (type == "ByteLevel") {
    out.kind = ComponentKind::kByteLevelSplit;
    PLOW_TRY(out.a, required_boolean(value, "add_prefix_space"));
    PLOW_TRY(out.b, value.boolean_or("use_regex", true));
  } else if (type == "Split") {
    PLOW_TRY_STATUS(parse_pattern(value, ComponentKind::kSplitString, ComponentKind::kSplitRegex, out));
    PLOW_TRY(const JsonElement behavior, value.at("behavior"));
    PLOW_TRY(out.a, parse_behavior(behavior));
    PLOW_TRY(out.b, required_boolean(value, "invert"));
  } else if (type == "Digits") {
    out.kind = ComponentKind::kDigits;
    PLOW_TRY(out.a, required_boolean(value, "individual_digits"));
  } else if (type == "Punctuation") {
    out.kind = ComponentKind::kPunctuation;
    out.a = static_cast<uint32_t>(SplitBehavior::kIsolated);
    if (const auto behavior = value.find("behavior")) {
      PLOW_TRY(out.a, parse_behavior(*behavior));
    }
  } else if (type == "Whitespace") {
    out.kind = ComponentKind::kWhitespace;
  } else if (type == "WhitespaceSplit") {
    out.kind = ComponentKind::kWhitespaceSplit;
  } else if (type == "Metaspace") {
    out.kind = ComponentKind::kMetaspaceSplit;
    return parse_metaspace(value, out);
  } else if (type == "BertPreTokenizer") {
    out.kind = ComponentKind::kBertSplit;
  } else if (type == "CharDelimiterSplit") {
    out.kind = ComponentKind::kCharDelimiterSplit;
    PLOW_TRY(out.content, required_character(value, "delimiter"));
  } else if (type == "FixedLength") {
    out.kind = ComponentKind::kFixedLength;
    PLOW_TRY(out.a, required_count(value, "length"));
    if (out.a == 0) return value.error("the length must not be 0");
  } else {
    return value.error(fmt::format("the pre-tokenizer '{}' is not supported", type));
  }
  return {};
}

Status parse_one_decoder(const JsonElement& value, const std::string& type, Component& out) {
  if (type == "ByteLevel") {
    out.kind = ComponentKind::kByteLevelDecoder;
  } else if (type == "ByteFallback") {
    out.kind = ComponentKind::kByteFallback;
  } else if (type == "Fuse") {
    out.kind = ComponentKind::kFuse;
  } else if (type == "Strip") {
    out.kind = ComponentKind::kStripDecoder;
    PLOW_TRY(out.content, required_character(value, "content"));
    PLOW_TRY(out.a, required_count(value, "start"));
    PLOW_TRY(out.b, required_count(value, "stop"));
  } else if (type == "Replace") {
    PLOW_TRY_STATUS(parse_pattern(value, ComponentKind::kReplaceString, ComponentKind::kReplaceRegex, out));
    PLOW_TRY(out.content, required_string(value, "content"));
  } else if (type == "Metaspace") {
    out.kind = ComponentKind::kMetaspaceDecoder;
    return parse_metaspace(value, out);
  } else if (type == "WordPiece") {
    out.kind = ComponentKind::kWordPieceDecoder;
    PLOW_TRY(out.content, required_string(value, "prefix"));
    PLOW_TRY(out.a, required_boolean(value, "cleanup"));
  } else if (type == "BPEDecoder") {
    out.kind = ComponentKind::kBpeDecoder;
    PLOW_TRY(out.content, required_string(value, "suffix"));
    if (out.content.empty()) return value.error("an empty suffix matches everywhere and is not supported");
  } else {
    return value.error(fmt::format("the decoder '{}' is not supported", type));
  }
  return {};
}

using ParseOne = Status (*)(const JsonElement& value, const std::string& type, Component& out);

Status parse_flattened(const JsonElement& value, std::string_view items_key, ParseOne parse_one, int nesting,
                       std::vector<Component>& out) {
  PLOW_TRY(const std::string type, component_type(value));
  if (type != "Sequence") {
    Component component;
    PLOW_TRY_STATUS(parse_one(value, type, component));
    out.push_back(std::move(component));
    return {};
  }
  if (nesting == kMaxNesting)
    return value.error(fmt::format("sequences are nested deeper than {}", kMaxNesting));
  PLOW_TRY(const JsonElement items, value.at(items_key));
  PLOW_TRY(const auto array, items.array());
  size_t index = 0;
  for (const auto item : array) {
    PLOW_TRY_STATUS(parse_flattened(items.item(item, index++), items_key, parse_one, nesting + 1, out));
  }
  return {};
}

// BertProcessing and RobertaProcessing: ["[SEP]", 102].
Result<uint32_t> parse_named_id(const JsonElement& value) {
  PLOW_TRY(const auto pair, value.array());
  if (pair.size() != 2) return value.error("must be a pair of a token and its id");
  PLOW_TRY(const uint64_t id, JsonElement{pair.at(1).value_unsafe(), value.path}.number());
  if (id >= kMaxTokens) return value.error(fmt::format("the id {} is not below {}", id, kMaxTokens));
  return static_cast<uint32_t>(id);
}

Result<std::vector<uint32_t>> parse_template(const JsonElement& value) {
  std::vector<uint32_t> result;
  PLOW_TRY(const JsonElement tokens, value.at("special_tokens"));
  PLOW_TRY(const JsonElement single, value.at("single"));
  PLOW_TRY(const auto pieces, single.array());
  size_t index = 0;
  for (const auto element : pieces) {
    const JsonElement piece = single.item(element, index++);
    if (const auto sequence = piece.find("Sequence")) {
      PLOW_TRY(const std::string id, required_string(*sequence, "id"));
      if (id != "A") return sequence->error("the template of a single text may only use the sequence A");
      result.push_back(kTemplateText);
      continue;
    }
    PLOW_TRY(const JsonElement special, piece.at("SpecialToken"));
    PLOW_TRY(const std::string name, required_string(special, "id"));
    PLOW_TRY(const JsonElement definition, tokens.at(name));
    PLOW_TRY(const JsonElement ids, definition.at("ids"));
    PLOW_TRY(const auto id_array, ids.array());
    size_t id_index = 0;
    for (const auto id_element : id_array) {
      const JsonElement id = ids.item(id_element, id_index++);
      PLOW_TRY(const uint64_t number, id.number());
      if (number >= kMaxTokens) return id.error(fmt::format("the id {} is not below {}", number, kMaxTokens));
      result.push_back(static_cast<uint32_t>(number));
    }
  }
  if (std::find(result.begin(), result.end(), kTemplateText) == result.end()) {
    return single.error("the template of a single text must use the sequence A");
  }
  return result;
}

// An empty result: the post-processor adds nothing.
Result<std::vector<uint32_t>> parse_post(const JsonElement& value, int nesting) {
  PLOW_TRY(const std::string type, component_type(value));
  if (type == "ByteLevel") return std::vector<uint32_t>{};  // it changes offsets only
  if (type == "TemplateProcessing") return parse_template(value);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    PLOW_TRY(const JsonElement cls, value.at("cls"));
    PLOW_TRY(const JsonElement sep, value.at("sep"));
    PLOW_TRY(const uint32_t cls_id, parse_named_id(cls));
    PLOW_TRY(const uint32_t sep_id, parse_named_id(sep));
    return std::vector<uint32_t>{cls_id, kTemplateText, sep_id};
  }
  if (type != "Sequence") return value.error(fmt::format("the post-processor '{}' is not supported", type));
  if (nesting == kMaxNesting)
    return value.error(fmt::format("sequences are nested deeper than {}", kMaxNesting));
  PLOW_TRY(const JsonElement items, value.at("processors"));
  PLOW_TRY(const auto array, items.array());
  std::vector<uint32_t> result;
  size_t index = 0;
  for (const auto element : array) {
    const JsonElement item = items.item(element, index++);
    PLOW_TRY(std::vector<uint32_t> one, parse_post(item, nesting + 1));
    if (one.empty()) continue;
    if (!result.empty()) return item.error("a second post-processor that adds tokens is not supported");
    result = std::move(one);
  }
  return result;
}

}  // namespace

Status parse_normalizer(const JsonElement& value, std::vector<Component>& out) {
  return parse_flattened(value, "normalizers", parse_one_normalizer, 0, out);
}

Status parse_pre_tokenizer(const JsonElement& value, std::vector<Component>& out) {
  return parse_flattened(value, "pretokenizers", parse_one_pre_tokenizer, 0, out);
}

Status parse_decoder(const JsonElement& value, std::vector<Component>& out) {
  return parse_flattened(value, "decoders", parse_one_decoder, 0, out);
}

Result<std::vector<uint32_t>> parse_post_processor(const JsonElement& value) {
  PLOW_TRY(std::vector<uint32_t> result, parse_post(value, 0));
  if (result.empty()) result.push_back(kTemplateText);
  return result;
}

}  // namespace plow
