// The models of `tokenizers`: BPE, Unigram, WordPiece (models/*/serialization.rs there).
#include "text/tokenizer/parse_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plow {

namespace {

Status parse_vocabulary(const JsonElement& value, Vocabulary& vocabulary) {
  PLOW_TRY(const auto fields, value.object());
  for (const auto field : fields) {
    const JsonElement id = {field.value, value.path};
    PLOW_TRY(const uint64_t number, id.number());
    if (auto status = vocabulary.add(std::string(field.key), number); !status.ok())
      return status.error().at(value.path);
  }
  return {};
}

// Both spellings that are in use: ["left", "right"] and "left right".
Status parse_merge(const JsonElement& value, ModelDescription& model) {
  std::string_view left;
  std::string_view right;
  if (value.is_array()) {
    PLOW_TRY(const auto pair, value.array());
    if (pair.size() != 2) return value.error("must be a pair of pieces");
    PLOW_TRY(left, JsonElement{pair.at(0).value_unsafe(), value.path}.string());
    PLOW_TRY(right, JsonElement{pair.at(1).value_unsafe(), value.path}.string());
  } else {
    PLOW_TRY(const std::string_view text, value.string());
    const size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
      return value.error(fmt::format("'{}' must be two pieces with one space between them", text));
    }
    left = text.substr(0, space);
    right = text.substr(space + 1);
  }
  if (auto status = add_merge(model, left, right); !status.ok()) return status.error().at(value.path);
  return {};
}

Status parse_bpe(const JsonElement& value, ModelDescription& model) {
  model.kind = ModelKind::kBpe;
  if (const auto dropout = value.find("dropout")) {
    PLOW_TRY(const double p, dropout->real());
    if (p != 0)
      return dropout->error("merge dropout makes the ids random and is not supported; set it to null");
  }
  PLOW_TRY(const bool byte_fallback, value.boolean_or("byte_fallback", false));
  PLOW_TRY(const bool fuse_unk, value.boolean_or("fuse_unk", false));
  PLOW_TRY(const bool ignore_merges, value.boolean_or("ignore_merges", false));
  model.flags = (byte_fallback ? kByteFallbackModel : 0u) | (fuse_unk ? kFuseUnknown : 0u) |
                (ignore_merges ? kIgnoreMerges : 0u);
  PLOW_TRY(model.continuing_prefix, value.string_or("continuing_subword_prefix", ""));
  PLOW_TRY(model.end_of_word_suffix, value.string_or("end_of_word_suffix", ""));

  PLOW_TRY(const JsonElement vocabulary, value.at("vocab"));
  PLOW_TRY_STATUS(parse_vocabulary(vocabulary, model.vocabulary));
  PLOW_TRY(const JsonElement merges, value.at("merges"));
  PLOW_TRY(const auto items, merges.array());
  size_t index = 0;
  for (const auto item : items) PLOW_TRY_STATUS(parse_merge(merges.item(item, index++), model));

  if (const auto unk = value.find("unk_token")) {
    PLOW_TRY(const std::string_view piece, unk->string());
    model.unk = model.vocabulary.find(piece);
    if (!model.unk) model.flags |= kUnknownIsMissing;
  }
  return {};
}

Status parse_unigram(const JsonElement& value, ModelDescription& model) {
  model.kind = ModelKind::kUnigram;
  PLOW_TRY(const bool byte_fallback, value.boolean_or("byte_fallback", false));
  if (byte_fallback) model.flags |= kByteFallbackModel;
  PLOW_TRY(const JsonElement vocabulary, value.at("vocab"));
  PLOW_TRY(const auto items, vocabulary.array());
  for (const auto item : items) {
    const JsonElement entry = vocabulary.item(item, model.scores.size());
    PLOW_TRY(const auto pair, entry.array());
    if (pair.size() != 2) return entry.error("must be a pair of a piece and its score");
    PLOW_TRY(const std::string_view piece, JsonElement{pair.at(0).value_unsafe(), entry.path}.string());
    PLOW_TRY(const double score, JsonElement{pair.at(1).value_unsafe(), entry.path}.real());
    if (auto status = model.vocabulary.add(std::string(piece), model.scores.size(), true); !status.ok()) {
      return status.error().at(entry.path);
    }
    model.scores.push_back(score);
  }
  if (const auto unk = value.find("unk_id")) {
    PLOW_TRY(const uint64_t id, unk->number());
    if (id >= model.scores.size()) {
      return unk->error(
          fmt::format("{} is not below the size of the vocabulary, {}", id, model.scores.size()));
    }
    model.unk = static_cast<uint32_t>(id);
  }
  return {};
}

Status parse_word_piece(const JsonElement& value, ModelDescription& model) {
  model.kind = ModelKind::kWordPiece;
  PLOW_TRY(const JsonElement vocabulary, value.at("vocab"));
  PLOW_TRY_STATUS(parse_vocabulary(vocabulary, model.vocabulary));
  PLOW_TRY(const JsonElement prefix, value.at("continuing_subword_prefix"));
  PLOW_TRY(const std::string_view prefix_text, prefix.string());
  model.continuing_prefix = prefix_text;
  PLOW_TRY(const JsonElement limit, value.at("max_input_chars_per_word"));
  PLOW_TRY(const uint64_t max_chars, limit.number());
  if (max_chars > kMaxCharsPerWord)
    return limit.error(fmt::format("{} is above {}", max_chars, kMaxCharsPerWord));
  model.max_chars_per_word = static_cast<uint32_t>(max_chars);
  PLOW_TRY(const JsonElement unk, value.at("unk_token"));
  PLOW_TRY(const std::string_view piece, unk.string());
  model.unk = model.vocabulary.find(piece);
  if (!model.unk) model.flags |= kUnknownIsMissing;
  return {};
}

}  // namespace

Result<ModelDescription> parse_model(const JsonElement& value) {
  ModelDescription model;
  PLOW_TRY(std::string type, value.string_or("type", ""));
  // Files from before the field existed are recognised by their fields, as `tokenizers` does.
  if (type.empty()) type = value.find("merges") ? "BPE" : value.find("unk_id") ? "Unigram" : "WordPiece";
  if (type == "BPE") {
    PLOW_TRY_STATUS(parse_bpe(value, model));
  } else if (type == "Unigram") {
    PLOW_TRY_STATUS(parse_unigram(value, model));
  } else if (type == "WordPiece") {
    PLOW_TRY_STATUS(parse_word_piece(value, model));
  } else {
    return value.error(
        fmt::format("the model type '{}' is not supported; BPE, Unigram and WordPiece are", type));
  }
  if (model.vocabulary.size() == 0) return value.error("the vocabulary is empty");
  return model;
}

}  // namespace plow
