// The layout of tokenizer.bin, version 1. Little-endian; every section begins at a multiple of 8 bytes.
//
//   TableHeader | sections, in the order of SectionId
//
// All strings of a table lie in one section and are named by (offset, length). Ids run to token_count - 1.
// Hash tables are open-addressed with linear probing; their slot counts are powers of two and at least one
// slot is free.
#pragma once

#include "text/tokenizer/trie.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace plow {

inline constexpr std::array<char, 8> kTableMagic = {'P', 'L', 'O', 'W', 'T', 'O', 'K', '\0'};
inline constexpr uint32_t kTableVersion = 1;
inline constexpr uint32_t kNoToken = 0xffffffffu;

// The largest vocabulary that a table may have. The largest that is published has about 1,000,000 (XLM-V);
// the limit keeps a hostile id from asking for gigabytes.
inline constexpr uint32_t kMaxTokens = 1u << 22;

// The longest continuing_subword_prefix ("##") and end_of_word_suffix ("</w>"), in bytes: they are put to
// every character.
inline constexpr size_t kMaxAffixBytes = 256;

// How many slots a search in a hash table looks at. At the load that write_table() keeps, chains are a few
// dozen slots; the limit is for tables and vocabularies that were made to collide.
inline constexpr size_t kMaxProbes = 4096;

// The largest max_input_chars_per_word: WordPiece takes a time that grows with its square. BERT has 100.
inline constexpr uint32_t kMaxCharsPerWord = 1000;

// Components of one kind, and entries of the template. Published tokenizers have fewer than ten of each.
inline constexpr size_t kMaxComponents = 256;

enum class ModelKind : uint32_t { kBpe = 1, kUnigram = 2, kWordPiece = 3 };

enum ModelFlags : uint32_t {
  kByteFallbackModel = 1,
  kFuseUnknown = 2,
  kIgnoreMerges = 4,
  kUnknownIsMissing = 8,  // an unknown token is named that the vocabulary lacks: an error when it is needed
};

enum TokenFlags : uint8_t {
  kTokenExists = 1,
  kTokenInModel = 2,  // the model may produce it
  kTokenAdded = 4,
  kTokenSpecial = 8,  // an added token that skip_special leaves out
  kTokenControl =
      16,  // special, or named by the configuration as bos, eos, pad or eot: text must not become it
};

enum AddedFlags : uint32_t {
  kSingleWord = 1,
  kLeftStrip = 2,
  kRightStrip = 4,
  kNormalizedToken = 8,
};

enum class SectionId : uint32_t {
  kStrings,         // char[]
  kTokens,          // StringRef[token_count]: spelling of each id
  kTokenFlags,      // uint8_t[token_count]: TokenFlags
  kPieceSlots,      // uint32_t[power of two]: ids of model tokens by XXH3-64 of the spelling
  kMerges,          // MergeSlot[power of two], BPE
  kScores,          // double[token_count], Unigram
  kPieceTrie,       // TrieNode[], Unigram: spelling -> id
  kAddedTokens,     // AddedRecord[], by id
  kAddedTrie,       // TrieNode[]: tokens matched in the text as it comes -> index into kAddedTokens
  kNormalizedTrie,  // TrieNode[]: tokens matched in normalized text -> index into kAddedTokens
  kNormalizers,     // ComponentRecord[]
  kPreTokenizers,   // ComponentRecord[]
  kDecoders,        // ComponentRecord[]
  kTemplate,        // uint32_t[]: ids around the text; kTemplateText stands for the text
  kCount,
};
inline constexpr size_t kSectionCount = static_cast<size_t>(SectionId::kCount);
inline constexpr uint32_t kTemplateText = kNoToken;

struct StringRef {
  uint32_t offset = 0;
  uint32_t length = 0;
};

struct SectionRecord {
  uint64_t offset = 0;  // from the beginning of the table
  uint64_t bytes = 0;
};

struct TableHeader {
  std::array<char, 8> magic = kTableMagic;
  uint32_t version = kTableVersion;
  uint32_t section_count = kSectionCount;
  uint64_t table_bytes = 0;
  uint64_t digest_low = 0;  // XXH3-128 of all that follows digest_high
  uint64_t digest_high = 0;
  uint32_t token_count = 0;
  ModelKind model = ModelKind::kBpe;
  uint32_t model_flags = 0;
  uint32_t unk_token = kNoToken;         // of the model
  uint32_t max_chars_per_word = 0;       // WordPiece
  uint32_t has_decoder = 0;              // 0: tokens are joined with spaces
  StringRef continuing_prefix;           // BPE and WordPiece
  StringRef end_of_word_suffix;          // BPE
  std::array<uint32_t, 5> special = {};  // bos, eos, pad, unk, eot; kNoToken: none
  uint32_t reserved = 0;
  std::array<SectionRecord, kSectionCount> sections = {};
};
inline constexpr size_t kDigestBegin = offsetof(TableHeader, token_count);
static_assert(kDigestBegin == 40 && sizeof(TableHeader) == 104 + 16 * kSectionCount);

struct MergeSlot {
  uint32_t left = 0;
  uint32_t right = 0;
  uint32_t rank = 0;
  uint32_t merged = kNoToken;  // kNoToken: the slot is free
};

// The slot where the search for a merge begins.
inline uint64_t merge_hash(uint32_t left, uint32_t right) {
  // Fibonacci hashing (Knuth, vol. 3, 6.4): the high bits of a product with 2^64 / golden ratio are well
  // mixed.
  const uint64_t product = (static_cast<uint64_t>(left) << 32 | right) * 0x9e3779b97f4a7c15u;
  return product ^ product >> 32;
}

struct AddedRecord {
  uint32_t id = 0;
  uint32_t flags = 0;  // AddedFlags
  StringRef decoded;   // what the decoder sees: the spelling, normalized when the token is matched in
                       // normalized text
};

struct ComponentRecord {
  uint32_t kind = 0;  // ComponentKind
  uint32_t a = 0;
  uint32_t b = 0;
  StringRef pattern;
  StringRef content;
  uint32_t reserved = 0;
};

}  // namespace plow
