// The tokenizer metadata of a GGUF file -> the description that the model's tokenizer.json would give.
#include "text/tokenizer/description.h"
#include "text/tokenizer/gguf_pre_tokenizers.h"
#include "text/tokenizer/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plow {

namespace {

// tokenizer.ggml.token_type
enum GgufTokenType : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

constexpr std::string_view kMetaspace = "\xe2\x96\x81";  // U+2581

int32_t type_of(const GgufTokenizerSource& source, size_t id) {
  return source.types.empty() ? kNormal : source.types[id];
}

std::string replaced(std::string_view text, char from, std::string_view to) {
  std::string out;
  for (const char c : text) {
    if (c == from) {
      out += to;
    } else {
      out += c;
    }
  }
  return out;
}

Status check_source(const GgufTokenizerSource& source) {
  const size_t count = source.tokens.size();
  if (count == 0) return input_error("tokenizer.ggml.tokens is missing or empty");
  if (!source.types.empty() && source.types.size() != count) {
    return input_error(
        fmt::format("tokenizer.ggml.token_type has {} entries, tokens {}", source.types.size(), count));
  }
  if (!source.scores.empty() && source.scores.size() != count) {
    return input_error(
        fmt::format("tokenizer.ggml.scores has {} entries, tokens {}", source.scores.size(), count));
  }
  for (size_t id = 0; id < count; ++id) {
    if (first_invalid_utf8(source.tokens[id]))
      return input_error(fmt::format("tokenizer.ggml.tokens[{}] is not UTF-8", id));
  }
  const std::pair<const char*, std::optional<uint32_t>> ids[] = {
      {"bos", source.bos_id},     {"eos", source.eos_id}, {"unknown", source.unk_id},
      {"padding", source.pad_id}, {"eot", source.eot_id}, {"seperator", source.sep_id},
      {"cls", source.cls_id}};
  for (const auto& [name, id] : ids) {
    if (id && *id >= count) {
      return input_error(
          fmt::format("tokenizer.ggml.{}_token_id is {}, but there are {} tokens", name, *id, count));
    }
  }
  return {};
}

// The spelling in a tokenizer.json of token `id`: sentencepiece files store runs of spaces that are
// user-defined as spaces.
std::string sentencepiece_spelling(const GgufTokenizerSource& source, size_t id) {
  return type_of(source, id) == kUserDefined ? replaced(source.tokens[id], ' ', kMetaspace)
                                             : source.tokens[id];
}

Status add_special_tokens(const GgufTokenizerSource& source, TokenizerDescription& description) {
  for (size_t id = 0; id < source.tokens.size(); ++id) {
    const int32_t type = type_of(source, id);
    if (type != kControl && type != kUserDefined) continue;
    AddedToken token;
    token.id = static_cast<uint32_t>(id);
    token.content = description.model.vocabulary.piece(token.id);
    token.special = type == kControl;
    PLOW_TRY_STATUS(add_token(description, std::move(token)));
  }
  return {};
}

struct ScoredMerge {
  float score;
  size_t left_characters;
  size_t right_characters;
  std::string_view left;
  std::string_view right;
};

// A sentencepiece BPE model has scores in place of merges: of two neighbours that make a piece, the best
// piece goes first. The same in merges: every cut of every piece into two pieces, best score first, then the
// longest left part (so that runs of spaces grow from the left), then the longest right part, then the order
// of the vocabulary.
Status add_merges_by_score(const GgufTokenizerSource& source, ModelDescription& model) {
  std::vector<ScoredMerge> merges;
  const Vocabulary& vocabulary = model.vocabulary;
  const auto characters = [](std::string_view text) {
    return static_cast<size_t>(
        std::count_if(text.begin(), text.end(), [](char b) { return !is_utf8_continuation(b); }));
  };
  for (uint32_t id = 0; id < vocabulary.id_limit(); ++id) {
    const std::string_view piece = vocabulary.piece(id);
    // sentencepiece scores user-defined and other pieces 0; GGUF overwrites that with -1000.
    const float score = type_of(source, id) == kNormal ? source.scores[id] : 0.0f;
    if (std::isnan(score)) return input_error(fmt::format("tokenizer.ggml.scores[{}] is not a number", id));
    if (piece.size() > kMaxTriePieceBytes)
      continue;  // its cuts alone would take time that grows with the square
    for (size_t cut = 1; cut < piece.size(); ++cut) {
      if (is_utf8_continuation(piece[cut])) continue;
      const std::string_view left = piece.substr(0, cut);
      const std::string_view right = piece.substr(cut);
      if (vocabulary.find(left) && vocabulary.find(right)) {
        merges.push_back({score, characters(left), characters(right), left, right});
      }
    }
  }
  std::stable_sort(merges.begin(), merges.end(), [](const ScoredMerge& x, const ScoredMerge& y) {
    if (x.score != y.score) return x.score > y.score;
    if (x.left_characters != y.left_characters) return x.left_characters > y.left_characters;
    return x.right_characters > y.right_characters;
  });
  for (const ScoredMerge& merge : merges) PLOW_TRY_STATUS(add_merge(model, merge.left, merge.right));
  return {};
}

// "left right": the first space that is not the first character, since a piece may begin with one.
Status add_listed_merges(const GgufTokenizerSource& source, ModelDescription& model) {
  for (size_t i = 0; i < source.merges.size(); ++i) {
    const std::string& merge = source.merges[i];
    const size_t space = merge.find(' ', 1);
    if (space == std::string::npos)
      return input_error(fmt::format("tokenizer.ggml.merges[{}] is not two pieces", i));
    const std::string_view text = merge;
    if (auto status = add_merge(model, text.substr(0, space), text.substr(space + 1)); !status.ok()) {
      return status.error().at(fmt::format("tokenizer.ggml.merges[{}]", i));
    }
  }
  return {};
}

// The components of a sentencepiece model: spaces become U+2581, unknown characters bytes.
void add_sentencepiece_components(bool space_prefix, TokenizerDescription& description) {
  const std::string mark(kMetaspace);
  if (space_prefix) description.normalizers.push_back({ComponentKind::kPrepend, 0, 0, "", mark});
  description.normalizers.push_back({ComponentKind::kReplaceString, 0, 0, " ", mark});
  description.has_decoder = true;
  description.decoders = {{ComponentKind::kReplaceString, 0, 0, mark, " "},
                          {ComponentKind::kByteFallback, 0, 0, "", ""},
                          {ComponentKind::kFuse, 0, 0, "", ""}};
  if (space_prefix) description.decoders.push_back({ComponentKind::kStripDecoder, 1, 0, "", " "});
}

// "llama": scores; "gemma4": the same with merges listed.
Status describe_sentencepiece(const GgufTokenizerSource& source, TokenizerDescription& description) {
  ModelDescription& model = description.model;
  model.flags = kByteFallbackModel | kFuseUnknown;
  for (size_t id = 0; id < source.tokens.size(); ++id) {
    PLOW_TRY_STATUS(model.vocabulary.add(sentencepiece_spelling(source, id), id));
  }
  model.unk = source.unk_id;
  const bool has_merges = source.model == "gemma4";
  if (has_merges) {
    PLOW_TRY_STATUS(add_listed_merges(source, model));
  } else {
    if (source.scores.empty())
      return input_error("tokenizer.ggml.scores is missing, which a 'llama' tokenizer needs");
    PLOW_TRY_STATUS(add_merges_by_score(source, model));
  }
  add_sentencepiece_components(source.add_space_prefix.value_or(!has_merges), description);
  return {};
}

Status describe_byte_level(const GgufTokenizerSource& source, TokenizerDescription& description) {
  PLOW_TRY(GgufPreTokenizer pre, find_gguf_pre_tokenizer(source.pre));
  ModelDescription& model = description.model;
  if (pre.ignore_merges) model.flags = kIgnoreMerges;
  for (size_t id = 0; id < source.tokens.size(); ++id) {
    if (type_of(source, id) == kUnused) continue;
    PLOW_TRY_STATUS(model.vocabulary.add(source.tokens[id], id));
  }
  PLOW_TRY_STATUS(add_listed_merges(source, model));
  description.normalizers = std::move(pre.normalizers);
  description.pre_tokenizers = std::move(pre.pre_tokenizers);
  description.has_decoder = true;
  description.decoders = {{ComponentKind::kByteLevelDecoder, 0, 0, "", ""}};
  return {};
}

// The converter writes "[CLS]" as it is, "##ing" as "ing" and "the" as U+2581 "the".
Status describe_word_piece(const GgufTokenizerSource& source, TokenizerDescription& description) {
  ModelDescription& model = description.model;
  model.kind = ModelKind::kWordPiece;
  model.continuing_prefix = "##";
  model.max_chars_per_word = 100;  // BERT's, which the file does not have
  for (size_t id = 0; id < source.tokens.size(); ++id) {
    const std::string& token = source.tokens[id];
    std::string piece = token;
    if (token.starts_with(kMetaspace)) {
      piece = token.substr(kMetaspace.size());
    } else if (type_of(source, id) == kNormal) {
      piece = model.continuing_prefix + token;
    }
    PLOW_TRY_STATUS(model.vocabulary.add(std::move(piece), id));
  }
  model.unk = source.unk_id ? source.unk_id : model.vocabulary.find("[UNK]");
  if (!model.unk)
    return input_error("tokenizer.ggml.unknown_token_id is missing, which a 'bert' tokenizer needs");
  description.normalizers = {{ComponentKind::kBertNormalizer,
                              kBertCleanText | kBertChineseChars | kBertStripAccents | kBertLowercase, 0, "",
                              ""}};
  description.pre_tokenizers = {{ComponentKind::kBertSplit, 0, 0, "", ""}};
  description.has_decoder = true;
  description.decoders = {{ComponentKind::kWordPieceDecoder, 1, 0, "", "##"}};
  return {};
}

Status add_template(const GgufTokenizerSource& source, TokenizerDescription& description) {
  const bool is_bert = source.model == "bert";
  bool add_bos = source.model == "llama" || source.model == "gemma4" || is_bert;
  if (source.model == "gpt2") {
    PLOW_TRY(const GgufPreTokenizer pre, find_gguf_pre_tokenizer(source.pre));
    add_bos = pre.add_bos;
  }
  add_bos = source.add_bos.value_or(add_bos);
  const bool add_eos = source.add_eos.value_or(is_bert);
  const auto bos = is_bert && source.cls_id ? source.cls_id : source.bos_id;
  const auto eos = is_bert && source.sep_id ? source.sep_id : source.eos_id;
  if (add_bos && !bos)
    return input_error("the tokenizer adds a beginning token, but tokenizer.ggml.bos_token_id is missing");
  if (add_eos && !eos)
    return input_error("the tokenizer adds an end token, but tokenizer.ggml.eos_token_id is missing");
  description.post_template.clear();
  if (add_bos) description.post_template.push_back(*bos);
  description.post_template.push_back(kTemplateText);
  if (add_eos) description.post_template.push_back(*eos);
  return {};
}

}  // namespace

Result<TokenizerDescription> describe_gguf(const GgufTokenizerSource& source) {
  PLOW_TRY_STATUS(check_source(source));
  TokenizerDescription description;
  if (source.model == "llama" || source.model == "gemma4") {
    PLOW_TRY_STATUS(describe_sentencepiece(source, description));
  } else if (source.model == "gpt2") {
    PLOW_TRY_STATUS(describe_byte_level(source, description));
  } else if (source.model == "bert") {
    PLOW_TRY_STATUS(describe_word_piece(source, description));
  } else {
    return input_error(fmt::format(
        "the tokenizer model '{}' (tokenizer.ggml.model) is not supported; llama, gpt2, gemma4 and bert are",
        source.model));
  }
  PLOW_TRY_STATUS(add_special_tokens(source, description));
  PLOW_TRY_STATUS(add_template(source, description));
  description.special = {source.bos_id, source.eos_id, source.pad_id, description.model.unk, source.eot_id};
  for (const auto& id : {source.bos_id, source.eos_id, source.pad_id, source.eot_id}) {
    if (id) description.control.push_back(*id);
  }
  find_end_of_turn(description);
  return description;
}

}  // namespace plow
