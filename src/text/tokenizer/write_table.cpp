// TokenizerDescription -> tokenizer.bin (table_format.h). The order of everything is fixed by ids and by the
// order of the source, never by a hash map, so the same tokenizer gives the same bytes.
#include "base/digest.h"
#include "text/tokenizer/description.h"
#include "text/tokenizer/normalize.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace plow {

namespace {

ComponentView view_of(const Component& c) { return {c.kind, c.a, c.b, c.pattern, c.content}; }

// The strings of a table.
class StringPool {
 public:
  StringRef add(std::string_view text) {
    const StringRef ref = {static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(text.size())};
    bytes_ += text;
    return ref;
  }
  bool fits() const { return bytes_.size() <= UINT32_MAX; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Sections in the order of SectionId, behind a header.
class TableBuilder {
 public:
  TableBuilder() : bytes_(sizeof(TableHeader)) {}

  template <class T>
  void add(SectionId id, std::span<const T> items) {
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    header.sections[static_cast<size_t>(id)] = {bytes_.size(), items.size_bytes()};
    const auto raw = std::as_bytes(items);
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }

  std::vector<std::byte> finish() {
    header.table_bytes = bytes_.size();
    std::memcpy(bytes_.data(), &header, sizeof(header));
    const Digest128 digest = xxh3_128(std::span<const std::byte>(bytes_).subspan(kDigestBegin));
    header.digest_low = digest.low;
    header.digest_high = digest.high;
    std::memcpy(bytes_.data(), &header, sizeof(header));
    return std::move(bytes_);
  }

  TableHeader header;

 private:
  std::vector<std::byte> bytes_;
};

// At least half as many slots again as entries, so searches stay short.
size_t hash_slots(size_t entries) { return std::bit_ceil(entries + entries / 2 + 1); }

Error too_many_collisions() {
  return input_error("the vocabulary fills the hash table so unevenly that it must have been made to");
}

// Every spelling that the model finds, each under the id it finds.
Result<std::vector<uint32_t>> make_piece_slots(const Vocabulary& vocabulary) {
  std::vector<uint32_t> slots(hash_slots(vocabulary.size()), kNoToken);
  const size_t mask = slots.size() - 1;
  for (uint32_t id = 0; id < vocabulary.id_limit(); ++id) {
    if (!vocabulary.has(id) || vocabulary.find(vocabulary.piece(id)) != id) continue;
    const std::string& piece = vocabulary.piece(id);
    size_t slot = XXH3_64bits(piece.data(), piece.size()) & mask;
    for (size_t probe = 1; slots[slot] != kNoToken; ++probe, slot = (slot + 1) & mask) {
      if (probe == kMaxProbes) return too_many_collisions();
    }
    slots[slot] = id;
  }
  return slots;
}

// A pair that occurs twice keeps its last rank, as in `tokenizers`.
Result<std::vector<MergeSlot>> make_merge_slots(std::span<const Merge> merges) {
  std::vector<MergeSlot> slots(hash_slots(merges.size()));
  const size_t mask = slots.size() - 1;
  uint32_t rank = 0;
  for (const Merge& merge : merges) {
    size_t slot = merge_hash(merge.left, merge.right) & mask;
    const auto is_other = [&](const MergeSlot& s) {
      return s.merged != kNoToken && (s.left != merge.left || s.right != merge.right);
    };
    for (size_t probe = 1; is_other(slots[slot]); ++probe, slot = (slot + 1) & mask) {
      if (probe == kMaxProbes) return too_many_collisions();
    }
    slots[slot] = {merge.left, merge.right, rank++, merge.merged};
  }
  return slots;
}

std::vector<ComponentRecord> make_records(std::span<const Component> components, StringPool& strings) {
  std::vector<ComponentRecord> records;
  for (const Component& c : components) {
    ComponentRecord record = {static_cast<uint32_t>(c.kind), c.a, c.b, strings.add(c.pattern),
                              strings.add(c.content),        0};
    records.push_back(record);
  }
  return records;
}

// What an added token is matched as, and what the decoder sees: normalized when it is matched in normalized
// text.
Result<std::string> decoded_form(const AddedToken& token, const Normalizer& normalizer) {
  std::string text = token.content;
  bool lost_front = false;
  if (token.flags & kNormalizedToken) PLOW_TRY_STATUS(normalizer.apply(text, lost_front));
  return text;
}

struct AddedTables {
  std::vector<AddedRecord> records;
  std::vector<TrieNode> trie;
  std::vector<TrieNode> normalized_trie;
};

Result<AddedTables> make_added(const TokenizerDescription& description, StringPool& strings) {
  std::vector<ComponentView> views;
  for (const Component& c : description.normalizers) views.push_back(view_of(c));
  PLOW_TRY(const Normalizer normalizer, Normalizer::create(views));

  std::vector<const AddedToken*> tokens;
  for (const AddedToken& token : description.added) tokens.push_back(&token);
  std::sort(tokens.begin(), tokens.end(), [](const auto* x, const auto* y) { return x->id < y->id; });

  AddedTables tables;
  std::vector<std::string> forms;
  for (const AddedToken* token : tokens) {
    PLOW_TRY(std::string form, decoded_form(*token, normalizer));
    if (form.size() > kMaxTriePieceBytes)
      return input_error(fmt::format("the added token '{}' is too long", token->content));
    tables.records.push_back({token->id, token->flags, strings.add(form)});
    forms.push_back(std::move(form));
  }
  std::vector<std::pair<std::string_view, uint32_t>> plain;
  std::vector<std::pair<std::string_view, uint32_t>> in_normalized;
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    ((tokens[i]->flags & kNormalizedToken) ? in_normalized : plain).emplace_back(forms[i], i);
  }
  tables.trie = build_trie(std::move(plain));
  tables.normalized_trie = build_trie(std::move(in_normalized));
  return tables;
}

struct TokenTables {
  std::vector<StringRef> pieces;
  std::vector<uint8_t> flags;
};

TokenTables make_tokens(const TokenizerDescription& description, StringPool& strings) {
  const Vocabulary& vocabulary = description.model.vocabulary;
  const uint32_t count = std::max(vocabulary.id_limit(), description.added_vocabulary.id_limit());
  TokenTables tables = {std::vector<StringRef>(count), std::vector<uint8_t>(count)};
  for (uint32_t id = 0; id < vocabulary.id_limit(); ++id) {
    if (!vocabulary.has(id)) continue;
    tables.pieces[id] = strings.add(vocabulary.piece(id));
    tables.flags[id] = kTokenExists | kTokenInModel;
  }
  for (const AddedToken& token : description.added) {
    if (tables.flags[token.id] == 0) tables.pieces[token.id] = strings.add(token.content);
    tables.flags[token.id] |= static_cast<uint8_t>(kTokenExists | kTokenAdded);
    if (token.special) tables.flags[token.id] |= static_cast<uint8_t>(kTokenSpecial | kTokenControl);
  }
  for (const uint32_t id : description.control) tables.flags[id] |= kTokenControl;
  return tables;
}

Result<std::vector<TrieNode>> make_piece_trie(const ModelDescription& model) {
  std::vector<std::pair<std::string_view, uint32_t>> entries;
  for (uint32_t id = 0; id < model.vocabulary.id_limit(); ++id) {
    const std::string& piece = model.vocabulary.piece(id);
    if (piece.size() > kMaxTriePieceBytes) {
      return input_error(
          fmt::format("piece {} of the Unigram model is longer than {} bytes", id, kMaxTriePieceBytes));
    }
    entries.emplace_back(piece, id);
  }
  return build_trie(std::move(entries));
}

void fill_header(const TokenizerDescription& description, StringPool& strings, TableHeader& header) {
  const ModelDescription& model = description.model;
  header.model = model.kind;
  header.model_flags = model.flags;
  header.unk_token = model.unk.value_or(kNoToken);
  header.max_chars_per_word = model.max_chars_per_word;
  header.has_decoder = description.has_decoder;
  header.continuing_prefix = strings.add(model.continuing_prefix);
  header.end_of_word_suffix = strings.add(model.end_of_word_suffix);
  const SpecialIds& s = description.special;
  const std::optional<uint32_t> ids[] = {s.bos, s.eos, s.pad, s.unk, s.eot};
  for (size_t i = 0; i < header.special.size(); ++i) header.special[i] = ids[i].value_or(kNoToken);
}

}  // namespace

Result<std::vector<std::byte>> write_table(const TokenizerDescription& description) {
  const ModelDescription& model = description.model;
  StringPool strings;
  TableBuilder table;
  fill_header(description, strings, table.header);
  const TokenTables tokens = make_tokens(description, strings);
  table.header.token_count = static_cast<uint32_t>(tokens.pieces.size());
  PLOW_TRY(const AddedTables added, make_added(description, strings));
  const auto normalizers = make_records(description.normalizers, strings);
  const auto pre_tokenizers = make_records(description.pre_tokenizers, strings);
  const auto decoders = make_records(description.decoders, strings);
  if (!strings.fits()) return input_error("the strings of the tokenizer are larger than 4 GiB");

  std::vector<MergeSlot> merges;
  std::vector<TrieNode> piece_trie;
  std::vector<double> scores;
  if (model.kind == ModelKind::kBpe) {
    PLOW_TRY(merges, make_merge_slots(model.merges));
  }
  if (model.kind == ModelKind::kUnigram) {
    PLOW_TRY(piece_trie, make_piece_trie(model));
    scores = model.scores;
    scores.resize(tokens.pieces.size());  // added tokens have none
  }
  PLOW_TRY(const std::vector<uint32_t> slots, make_piece_slots(model.vocabulary));

  table.add<char>(SectionId::kStrings, strings.bytes());
  table.add<StringRef>(SectionId::kTokens, tokens.pieces);
  table.add<uint8_t>(SectionId::kTokenFlags, tokens.flags);
  table.add<uint32_t>(SectionId::kPieceSlots, slots);
  table.add<MergeSlot>(SectionId::kMerges, merges);
  table.add<double>(SectionId::kScores, scores);
  table.add<TrieNode>(SectionId::kPieceTrie, piece_trie);
  table.add<AddedRecord>(SectionId::kAddedTokens, added.records);
  table.add<TrieNode>(SectionId::kAddedTrie, added.trie);
  table.add<TrieNode>(SectionId::kNormalizedTrie, added.normalized_trie);
  table.add<ComponentRecord>(SectionId::kNormalizers, normalizers);
  table.add<ComponentRecord>(SectionId::kPreTokenizers, pre_tokenizers);
  table.add<ComponentRecord>(SectionId::kDecoders, decoders);
  table.add<uint32_t>(SectionId::kTemplate, description.post_template);
  return table.finish();
}

}  // namespace plow
