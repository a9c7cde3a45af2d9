#include "text/tokenizer/tokenizer.h"

#include "text/tokenizer/tokenizer_state.h"
#include "text/tokenizer/utf8.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

namespace plow {

namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 30;

using Model = std::variant<BpeModel, UnigramModel, WordPieceModel>;

Model make_model(const TableView& table) {
  switch (table.header().model) {
    case ModelKind::kUnigram:
      return UnigramModel(table);
    case ModelKind::kWordPiece:
      return WordPieceModel(table);
    default:
      return BpeModel(table);
  }
}

SpecialIds special_ids_of(const TableHeader& header) {
  const auto id = [&](size_t i) {
    return header.special[i] == kNoToken ? std::nullopt : std::optional<uint32_t>(header.special[i]);
  };
  return {id(0), id(1), id(2), id(3), id(4)};
}

Result<std::unique_ptr<TokenizerState>> open_state(std::span<const std::byte> bytes) {
  PLOW_TRY(TableView table, TableView::open(bytes));
  PLOW_TRY(Normalizer normalizer, Normalizer::create(table.components(SectionId::kNormalizers)));
  PLOW_TRY(PreTokenizer pre_tokenizer, PreTokenizer::create(table.components(SectionId::kPreTokenizers)));
  const bool join_with_spaces = table.header().has_decoder == 0;
  PLOW_TRY(Decoder decoder, Decoder::create(table.components(SectionId::kDecoders), join_with_spaces));
  return std::make_unique<TokenizerState>(table, std::move(normalizer), std::move(pre_tokenizer),
                                          std::move(decoder));
}

// Words come again and again; this remembers where in the text a word was first seen and which ids it got.
// Direct-mapped: a word replaces another of the same slot.
class WordCache {
 public:
  explicit WordCache(const PreTokenized& text)
      : text_(&text), entries_(text.pieces.size() < kFewWords ? 0 : kSlots) {}

  // Appends the ids of `piece` if it was seen before; else false, and add() is to follow.
  bool find(std::string_view piece, std::vector<uint32_t>& ids) {
    entry_ = nullptr;
    if (entries_.empty() || piece.size() > kLongestWord) return false;
    entry_ = &entries_[XXH3_64bits(piece.data(), piece.size()) % kSlots];
    if (entry_->count == 0 || text_->piece(entry_->piece) != piece) return false;
    for (size_t i = 0; i < entry_->count; ++i) ids.push_back(ids[entry_->first_id + i]);
    return true;
  }

  void add(size_t piece, size_t first_id, size_t count) {
    if (entry_ != nullptr) *entry_ = {piece, first_id, count};
    entry_ = nullptr;
  }

 private:
  static constexpr size_t kFewWords = 64;      // not worth the entries
  static constexpr size_t kSlots = 4096;       // 96 KiB
  static constexpr size_t kLongestWord = 256;  // longer ones hardly come twice

  struct Entry {
    size_t piece = 0;  // index of the piece where it was seen
    size_t first_id = 0;
    size_t count = 0;  // 0: free
  };
  const PreTokenized* text_;
  std::vector<Entry> entries_;
  Entry* entry_ = nullptr;  // of the last find()
};

// Encoding of one text.
class Encoder {
 public:
  Encoder(const TokenizerState& state, bool allow_control, std::vector<uint32_t>& ids)
      : state_(state), allow_control_(allow_control), ids_(ids) {}

  Status encode(std::string_view text) {
    for (const AddedSplit& split : state_.added.split(text, allow_control_)) {
      if (split.id != kNoToken) {
        ids_.push_back(split.id);
      } else {
        const std::string_view stretch = text.substr(split.span.begin, split.span.end - split.span.begin);
        PLOW_TRY_STATUS(encode_stretch(std::string(stretch), split.span.begin == 0));
      }
    }
    return {};
  }

 private:
  Status encode_stretch(std::string text, bool is_at_start) {
    bool lost_front = false;
    PLOW_TRY_STATUS(state_.normalizer.apply(text, lost_front));
    for (const AddedSplit& split : state_.normalized_added.split(text, allow_control_)) {
      if (split.id != kNoToken) {
        ids_.push_back(split.id);
        continue;
      }
      PreTokenized pieces;
      pieces.text = text.substr(split.span.begin, split.span.end - split.span.begin);
      pieces.pieces = {{0, pieces.text.size()}};
      pieces.first_is_at_start = is_at_start && !lost_front && split.span.begin == 0;
      PLOW_TRY_STATUS(encode_pieces(pieces));
    }
    return {};
  }

  Status encode_pieces(PreTokenized& pieces) {
    PLOW_TRY_STATUS(state_.pre_tokenizer.apply(pieces));
    WordCache cache(pieces);
    for (size_t i = 0; i < pieces.pieces.size(); ++i) {
      const std::string_view piece = pieces.piece(i);
      if (cache.find(piece, ids_)) continue;
      const size_t first_id = ids_.size();
      PLOW_TRY_STATUS(std::visit([&](const auto& model) { return model.encode(piece, allow_control_, ids_); },
                                 state_.model));
      cache.add(i, first_id, ids_.size() - first_id);
    }
    return {};
  }

  const TokenizerState& state_;
  bool allow_control_;
  std::vector<uint32_t>& ids_;
};

bool names_control_token(const TableView& table, uint32_t id) {
  return (table.flags(id) & (kTokenSpecial | kTokenControl)) != 0;
}

std::vector<std::string_view> special_spellings_of(const TableView& table) {
  std::vector<std::string_view> spellings;
  for (uint32_t id = 0; id < table.token_count(); ++id) {
    if (names_control_token(table, id) && !table.piece(id).empty()) spellings.push_back(table.piece(id));
  }
  std::stable_sort(spellings.begin(), spellings.end(), [](auto a, auto b) { return a.size() > b.size(); });
  return spellings;
}

}  // namespace

TokenizerState::TokenizerState(TableView checked_table, Normalizer normalizer_steps,
                               PreTokenizer pre_tokenizer_steps, Decoder decoder_steps)
    : table(checked_table),
      normalizer(std::move(normalizer_steps)),
      pre_tokenizer(std::move(pre_tokenizer_steps)),
      decoder(std::move(decoder_steps)),
      added(table, SectionId::kAddedTrie),
      normalized_added(table, SectionId::kNormalizedTrie),
      model(make_model(table)),
      special(special_ids_of(table.header())),
      special_spellings(special_spellings_of(table)) {}

std::optional<std::string_view> TokenizerState::decoded_piece(uint32_t id) const {
  if (id >= table.token_count() || (table.flags(id) & kTokenExists) == 0) return std::nullopt;
  if ((table.flags(id) & kTokenAdded) != 0) {
    if (const AddedRecord* record = table.find_added(id)) return table.string(record->decoded);
  }
  return table.piece(id);
}

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerState> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::open(std::span<const std::byte> table) {
  PLOW_TRY(auto state, open_state(table));
  return Tokenizer(std::move(state));
}

Result<Tokenizer> Tokenizer::open(MappedFile file) {
  auto state = open_state(file.bytes());
  if (!state.ok()) return state.error().at(file.path().string());
  (*state)->file = std::move(file);
  return Tokenizer(std::move(*state));
}

Result<std::vector<uint32_t>> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (text.size() > kMaxTextBytes) {
    return input_error(fmt::format("a text of {} bytes is longer than {}", text.size(), kMaxTextBytes));
  }
  if (const auto offset = first_invalid_utf8(text)) {
    return input_error(
        fmt::format("the text is not UTF-8: the byte at offset {} begins no character", *offset));
  }
  std::vector<uint32_t> ids;
  Encoder encoder(*state_, options.parse_special, ids);
  PLOW_TRY_STATUS(encoder.encode(text));
  const auto around = state_->table.post_template();
  if (around.size() == 1 && around[0] == kTemplateText) return ids;
  std::vector<uint32_t> all;
  for (const uint32_t id : around) {
    if (id == kTemplateText) {
      all.insert(all.end(), ids.begin(), ids.end());
    } else if (options.add_special_tokens) {
      all.push_back(id);
    }
  }
  return all;
}

std::string Tokenizer::decode(std::span<const uint32_t> ids, bool skip_special) const {
  TokenStream stream(*this, skip_special);
  std::string text;
  for (const uint32_t id : ids) text += stream.push(id);
  text += stream.finish();
  return text;
}

uint32_t Tokenizer::vocab_size() const { return state_->table.token_count(); }

const SpecialIds& Tokenizer::special_ids() const { return state_->special; }

std::optional<uint32_t> Tokenizer::token_to_id(std::string_view piece) const {
  const TableView& table = state_->table;
  for (const AddedRecord& record : table.added()) {
    if (table.piece(record.id) == piece) return record.id;
  }
  const uint32_t id = table.find_piece(piece);
  return id == kNoToken ? std::nullopt : std::optional<uint32_t>(id);
}

std::string_view Tokenizer::id_to_token(uint32_t id) const {
  return id < vocab_size() ? state_->table.piece(id) : std::string_view();
}

bool Tokenizer::is_special(uint32_t id) const {
  return id < vocab_size() && names_control_token(state_->table, id);
}

std::span<const std::string_view> Tokenizer::special_spellings() const { return state_->special_spellings; }

std::string Tokenizer::token_bytes(uint32_t id) const {
  const auto piece = state_->decoded_piece(id);
  return piece ? state_->decoder.token_bytes(*piece) : std::string();
}

struct TokenStream::Impl {
  const TokenizerState* state;
  bool skip_special;
  DecodeStream stream;
};

TokenStream::TokenStream(const Tokenizer& tokenizer, bool skip_special)
    : impl_(new Impl{tokenizer.state_.get(), skip_special, DecodeStream(tokenizer.state_->decoder)}) {}
TokenStream::TokenStream(TokenStream&&) noexcept = default;
TokenStream& TokenStream::operator=(TokenStream&&) noexcept = default;
TokenStream::~TokenStream() = default;

std::string TokenStream::push(uint32_t id) {
  const auto piece = impl_->state->decoded_piece(id);
  if (!piece || (impl_->skip_special && (impl_->state->table.flags(id) & kTokenSpecial) != 0)) return {};
  impl_->stream.push(*piece);
  return impl_->stream.take();
}

std::string TokenStream::finish() {
  impl_->stream.finish();
  return impl_->stream.take();
}

}  // namespace plow
