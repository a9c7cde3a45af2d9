#include "text/tokenizer/description.h"

#include <fmt/format.h>

#include <array>

namespace plow {

Status Vocabulary::add(std::string piece, uint64_t id, bool allow_duplicates) {
  if (id >= kMaxTokens) {
    return input_error(
        fmt::format("the piece '{}' has the id {}; ids must be below {}", piece, id, kMaxTokens));
  }
  const auto narrow_id = static_cast<uint32_t>(id);
  if (has(narrow_id)) {
    return input_error(
        fmt::format("the pieces '{}' and '{}' have the same id {}", this->piece(narrow_id), piece, id));
  }
  const auto [entry, is_new] = ids_.try_emplace(std::move(piece), narrow_id);
  if (!is_new && !allow_duplicates) {
    return input_error(
        fmt::format("the piece '{}' occurs twice, with the ids {} and {}", entry->first, entry->second, id));
  }
  entry->second = narrow_id;
  if (narrow_id >= pieces_.size()) {
    pieces_.resize(narrow_id + 1, nullptr);
    exists_.resize(narrow_id + 1, false);
  }
  pieces_[narrow_id] = &entry->first;
  exists_[narrow_id] = true;
  ++size_;
  return {};
}

std::optional<uint32_t> Vocabulary::find(std::string_view piece) const {
  const auto found = ids_.find(std::string(piece));
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::optional<uint32_t> TokenizerDescription::find(std::string_view piece) const {
  if (const auto id = added_vocabulary.find(piece)) return id;
  return model.vocabulary.find(piece);
}

Status add_token(TokenizerDescription& description, AddedToken token) {
  if (token.content.empty()) return {};
  if (token.content.size() > kMaxTriePieceBytes) {
    return input_error(fmt::format("an added token of {} bytes is longer than {}", token.content.size(),
                                   kMaxTriePieceBytes));
  }
  const Vocabulary& vocabulary = description.model.vocabulary;
  const auto in_model = vocabulary.find(token.content);
  if (in_model && *in_model != token.id) {
    return input_error(fmt::format("'{}' is said to have the id {}, but the vocabulary gives it {}",
                                   token.content, token.id, *in_model));
  }
  if (!in_model && vocabulary.has(token.id)) {
    return input_error(fmt::format("'{}' has the id {}, which the vocabulary gives to '{}'", token.content,
                                   token.id, vocabulary.piece(token.id)));
  }
  if (description.added_vocabulary.find(token.content) == token.id) {
    description.added[description.added_index.at(token.id)] = std::move(token);
    return {};
  }
  PLOW_TRY_STATUS(description.added_vocabulary.add(token.content, token.id));
  description.added_index[token.id] = description.added.size();
  description.added.push_back(std::move(token));
  return {};
}

Status add_merge(ModelDescription& model, std::string_view left, std::string_view right) {
  if (left.empty() || right.empty()) {
    return input_error(
        fmt::format("the merge of '{}' and '{}' has an empty side, so it would make itself", left, right));
  }
  const std::string& prefix = model.continuing_prefix;
  if (right.size() < prefix.size()) {
    return input_error(fmt::format(
        "the merge of '{}' and '{}': the right side is shorter than the prefix '{}'", left, right, prefix));
  }
  const auto find = [&](std::string_view piece) -> Result<uint32_t> {
    if (const auto id = model.vocabulary.find(piece)) return *id;
    return input_error(
        fmt::format("the merge of '{}' and '{}' needs the piece '{}', which the vocabulary does not have",
                    left, right, piece));
  };
  Merge merge;
  PLOW_TRY(merge.left, find(left));
  PLOW_TRY(merge.right, find(right));
  PLOW_TRY(merge.merged, find(std::string(left) + std::string(right.substr(prefix.size()))));
  if (merge.merged == merge.left) {
    return input_error(fmt::format("the merge of '{}' and '{}' makes '{}' again", left, right, left));
  }
  model.merges.push_back(merge);
  return {};
}

void find_end_of_turn(TokenizerDescription& description) {
  if (description.special.eot) return;
  // The end of a turn in the chat formats of ChatML, Llama 3, Gemma, Gemma 4, Phi-3, and gpt-oss.
  constexpr std::array<std::string_view, 6> kSpellings = {"<|im_end|>", "<|eot_id|>", "<end_of_turn>",
                                                          "<turn|>",    "<|end|>",    "<|return|>"};
  for (const std::string_view spelling : kSpellings) {
    for (const AddedToken& token : description.added) {
      if (token.content != spelling) continue;
      if (description.special.eos != token.id) description.special.eot = token.id;
      return;
    }
  }
}

}  // namespace plow
