// Tokenizers from GGUF metadata. The large ones are compared by tools/compare_tokenizers.py; here the rules
// one by one.
#include "text/tokenizer/compile_tokenizer.h"
#include "text/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

namespace plow {
namespace {

// "llama": pieces with scores; 1 normal, 2 unknown, 3 control, 4 user-defined, 6 byte.
GgufTokenizerSource sentencepiece_source() {
  GgufTokenizerSource source;
  source.model = "llama";
  source.tokens = {"<unk>",   "<s>", "</s>",     "\u2581", "a",      "b",
                   "\u2581a", "ab",  "\u2581ab", "  ",     "<0xC3>", "<0xA9>"};
  source.scores = {0, 0, 0, -5, -6, -7, -2, -3, -1, -1000, 0, 0};
  source.types = {2, 3, 3, 1, 1, 1, 1, 1, 1, 4, 6, 6};
  source.bos_id = 1;
  source.eos_id = 2;
  source.unk_id = 0;
  return source;
}

GgufTokenizerSource byte_level_source() {
  GgufTokenizerSource source;
  source.model = "gpt2";
  source.pre = "gpt-2";
  source.tokens = {"a", "b", "\u0120", "ab", "\u0120ab", "<|end|>", "<pad0>"};
  source.types = {1, 1, 1, 1, 1, 3, 5};
  source.merges = {"a b", "\u0120 ab"};
  source.eos_id = 5;
  return source;
}

std::vector<uint32_t> encode(const GgufTokenizerSource& source, std::string_view text,
                             const EncodeOptions& options = {}) {
  const auto table = compile_tokenizer(source);
  EXPECT_TRUE(table.ok()) << table.error().message;
  const auto tokenizer = Tokenizer::open(*table);
  const auto ids = tokenizer->encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.error().message;
  return *ids;
}

using Ids = std::vector<uint32_t>;

TEST(GgufTest, ScoresDecideWhichNeighboursOfASentencePieceModelMergeFirst) {
  EXPECT_EQ(encode(sentencepiece_source(), "ab"), (Ids{1, 8}));
  // U+2581 a (-2) goes before ab (-3); then U+2581 ab has no way from "U+2581a" and "b" but as a merge of its
  // own.
  EXPECT_EQ(encode(sentencepiece_source(), "a ab"), (Ids{1, 6, 8}));
}

TEST(GgufTest, ASpacePrefixIsAddedUnlessTheFileSaysNo) {
  auto source = sentencepiece_source();
  EXPECT_EQ(encode(source, "a"), (Ids{1, 6}));
  source.add_space_prefix = false;
  EXPECT_EQ(encode(source, "a"), (Ids{1, 4}));
  const auto tokenizer_table = compile_tokenizer(source);
  EXPECT_EQ(Tokenizer::open(*tokenizer_table)->decode(Ids{6, 4}, false), " aa");
}

TEST(GgufTest, UnknownCharactersBecomeByteTokens) {
  EXPECT_EQ(encode(sentencepiece_source(), "\u00e9"), (Ids{1, 3, 10, 11}));
}

TEST(GgufTest, RunsOfSpacesThatAreUserDefinedAreSpelledWithTheMark) {
  auto source = sentencepiece_source();
  source.add_space_prefix = false;
  // The text has U+2581 itself; in the text as it comes "  " is no added token, for tokens are spelled with
  // U+2581.
  EXPECT_EQ(encode(source, "\u2581\u2581"), (Ids{1, 9}));
}

TEST(GgufTest, AByteLevelModelTakesItsMergesAndLeavesUnusedTokensOut) {
  EXPECT_EQ(encode(byte_level_source(), "ab ab"), (Ids{3, 4}));
  const auto table = compile_tokenizer(byte_level_source());
  const auto tokenizer = Tokenizer::open(*table);
  EXPECT_EQ(tokenizer->token_to_id("<pad0>"), std::nullopt);
  EXPECT_EQ(tokenizer->special_ids().eos, 5u);
}

TEST(GgufTest, ControlTokensAreSpecial) {
  const EncodeOptions parse = {.add_special_tokens = false, .parse_special = true};
  EXPECT_EQ(encode(byte_level_source(), "ab<|end|>", parse), (Ids{3, 5}));
  EXPECT_EQ(encode(byte_level_source(), "ab<|end|>"),
            (Ids{3}));  // "<|end|>" is made of characters that this model lacks
}

TEST(GgufTest, TheBeginningTokenIsAddedWhereTheFileOrTheKindOfModelSaysSo) {
  auto source = byte_level_source();
  source.bos_id = 5;
  EXPECT_EQ(encode(source, "a"), (Ids{0}));
  source.add_bos = true;
  source.add_eos = true;
  EXPECT_EQ(encode(source, "a"), (Ids{5, 0, 5}));
  source.add_bos = {};
  source.add_eos = {};
  source.pre = "llama-bpe";
  EXPECT_EQ(encode(source, "a"), (Ids{5, 0}));
}

TEST(GgufTest, WordPiecesAreSpelledAsTheirModelsSpellThem) {
  GgufTokenizerSource source;
  source.model = "bert";
  source.tokens = {"[UNK]", "[CLS]", "[SEP]", "\u2581un", "able", "\u2581able"};
  source.types = {3, 3, 3, 1, 1, 1};
  source.unk_id = 0;
  source.bos_id = 1;
  source.sep_id = 2;
  EXPECT_EQ(encode(source, "Unable able x"), (Ids{1, 3, 4, 5, 0, 2}));
}

TEST(GgufTest, BadMetadataIsRefusedByName) {
  const auto expect_error = [](GgufTokenizerSource source, std::string_view message) {
    const auto result = compile_tokenizer(source);
    ASSERT_FALSE(result.ok()) << message;
    EXPECT_NE(result.error().message.find(message), std::string::npos) << result.error().message;
  };
  auto source = sentencepiece_source();
  source.model = "rwkv";
  expect_error(source, "the tokenizer model 'rwkv' (tokenizer.ggml.model) is not supported");
  source = sentencepiece_source();
  source.tokens.clear();
  expect_error(source, "tokenizer.ggml.tokens is missing or empty");
  source = sentencepiece_source();
  source.scores.pop_back();
  expect_error(source, "tokenizer.ggml.scores has 11 entries, tokens 12");
  source.scores.clear();
  expect_error(source, "tokenizer.ggml.scores is missing");
  source = sentencepiece_source();
  source.types.pop_back();
  expect_error(source, "tokenizer.ggml.token_type has 11 entries, tokens 12");
  source = sentencepiece_source();
  source.bos_id = 99;
  expect_error(source, "tokenizer.ggml.bos_token_id is 99, but there are 12 tokens");
  source = sentencepiece_source();
  source.bos_id = {};
  expect_error(source, "tokenizer.ggml.bos_token_id is missing");
  source = sentencepiece_source();
  source.tokens[4] = "\xff";
  expect_error(source, "tokenizer.ggml.tokens[4] is not UTF-8");
  source.tokens[4] = "b";
  expect_error(source, "the piece 'b' occurs twice");
  source = byte_level_source();
  source.pre = "klingon";
  expect_error(source, "the pre-tokenizer 'klingon' (tokenizer.ggml.pre) is not known; known are: llama3");
  source.pre = "";
  expect_error(source, "tokenizer.ggml.pre is missing");
  source = byte_level_source();
  source.merges.push_back("nospace");
  expect_error(source, "tokenizer.ggml.merges[2] is not two pieces");
  source.merges.back() = "a z";
  expect_error(source, "tokenizer.ggml.merges[2]: the merge of 'a' and 'z' needs the piece 'z'");
}

}  // namespace
}  // namespace plow
