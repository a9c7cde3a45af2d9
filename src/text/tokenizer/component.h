// What a tokenizer is made of, as plain data: the same for the compiler, which reads it from JSON or GGUF,
// and for the runtime, which reads it from the table. A Sequence is no component: it is flattened, since its
// parts run one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plow {

// The numbers stand in the table: never reuse one.
enum class ComponentKind : uint32_t {
  // Normalizers: text -> text.
  kNfc = 1,
  kNfd = 2,
  kNfkc = 3,
  kNfkd = 4,
  kLowercase = 5,
  kStripWhitespace = 6,  // a: left, b: right
  kStripAccents = 7,
  kReplaceString = 8,  // pattern -> content; a decoder too
  kReplaceRegex = 9,   // likewise
  kPrepend = 10,       // content
  kNmt = 11,
  kPrecompiled = 12,     // content: the charsmap of sentencepiece
  kBertNormalizer = 13,  // a: BertFlags
  kByteLevelNormalizer = 14,
  // Pre-tokenizers: text -> pieces.
  kByteLevelSplit = 32,  // a: add_prefix_space, b: use_regex
  kSplitString = 33,     // pattern; a: SplitBehavior, b: invert
  kSplitRegex = 34,      // likewise
  kDigits = 35,          // a: individual_digits
  kPunctuation = 36,     // a: SplitBehavior
  kWhitespace = 37,
  kWhitespaceSplit = 38,
  kMetaspaceSplit = 39,  // content: the replacement character; a: PrependScheme, b: split
  kBertSplit = 40,
  kCharDelimiterSplit = 41,  // content: the character
  kFixedLength = 42,         // a: characters
  // Decoders: pieces -> text.
  kByteLevelDecoder = 64,
  kByteFallback = 65,
  kFuse = 66,
  kStripDecoder = 67,      // content: the character; a: how many at the start, b: at the stop
  kMetaspaceDecoder = 68,  // content: the replacement character; a: PrependScheme
  kWordPieceDecoder = 69,  // content: prefix; a: cleanup
  kBpeDecoder = 70,        // content: suffix
};

enum class SplitBehavior : uint32_t {
  kRemoved = 0,
  kIsolated = 1,
  kMergedWithPrevious = 2,
  kMergedWithNext = 3,
  kContiguous = 4
};
enum class PrependScheme : uint32_t { kFirst = 0, kNever = 1, kAlways = 2 };

enum BertFlags : uint32_t {
  kBertCleanText = 1,
  kBertChineseChars = 2,
  kBertStripAccents = 4,
  kBertLowercase = 8,
};

// `Text` is std::string while compiling and std::string_view (into the table) at run time.
template <class Text>
struct BasicComponent {
  ComponentKind kind = ComponentKind::kNfc;
  uint32_t a = 0;
  uint32_t b = 0;
  Text pattern{};
  Text content{};
};
using Component = BasicComponent<std::string>;
using ComponentView = BasicComponent<std::string_view>;

}  // namespace plow
