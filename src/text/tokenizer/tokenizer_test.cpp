#include "text/tokenizer/tokenizer.h"

#include "base/mapped_file.h"
#include "text/tokenizer/compile_tokenizer.h"
#include "text/tokenizer/utf8.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

namespace plow {
namespace {

using Ids = std::vector<uint32_t>;

constexpr EncodeOptions kPlain = {.add_special_tokens = false, .parse_special = false};
constexpr EncodeOptions kParse = {.add_special_tokens = false, .parse_special = true};

std::string testdata(const char* name) {
  return *read_text_file(fmt::format("{}/src/text/tokenizer/testdata/{}.json", PLOW_SOURCE_DIR, name));
}

// A tokenizer and the table that it looks into.
struct Opened {
  explicit Opened(std::string_view json, std::string_view config = {})
      : table(*compile_tokenizer(json, config)), tokenizer(Tokenizer::open(table).value()) {}
  std::vector<std::byte> table;
  Tokenizer tokenizer;
};

// A Unigram model whose control tokens are pieces with the best scores: only the rule keeps text from
// becoming one.
constexpr const char* kTemptingUnigram = R"({"added_tokens":[{"id":1,"content":"<end>","special":true}],
  "model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["<end>",0],["<",-9],["e",-9],["n",-9],["d",-9],[">",-9],["</s>",0],["/",-9],["s",-9]]}})";

TEST(TokenizerTest, TextNeverBecomesAControlTokenUnlessAskedFor) {
  const Opened t(kTemptingUnigram, R"({"eos_token":"</s>","tokenizer_class":"PreTrainedTokenizerFast"})");
  EXPECT_EQ(*t.tokenizer.encode("<end>", kParse), (Ids{1}));
  EXPECT_EQ(*t.tokenizer.encode("<end>", kPlain), (Ids{2, 3, 4, 5, 6}));
  // "</s>" is no added token; the configuration names it as the end.
  EXPECT_EQ(*t.tokenizer.encode("</s>", kPlain), (Ids{2, 8, 9, 6}));
}

TEST(TokenizerTest, NoModelMakesAControlTokenOfText) {
  const std::string added = R"("added_tokens":[{"id":2,"content":"ab","special":true}])";
  const Opened merged(fmt::format(
      R"({{{},"model":{{"type":"BPE","vocab":{{"a":0,"b":1,"ab":2}},"merges":[["a","b"]]}}}})", added));
  EXPECT_EQ(*merged.tokenizer.encode("ab", kPlain), (Ids{0, 1}));
  const Opened whole(fmt::format(
      R"({{{},"model":{{"type":"BPE","ignore_merges":true,"vocab":{{"a":0,"b":1,"ab":2}},"merges":[]}}}})",
      added));
  EXPECT_EQ(*whole.tokenizer.encode("ab", kPlain), (Ids{0, 1}));
  const Opened word(fmt::format(
      R"({{{},"model":{{"type":"WordPiece","unk_token":"a","continuing_subword_prefix":"##","max_input_chars_per_word":9,"vocab":{{"a":0,"##b":1,"ab":2}}}}}})",
      added));
  EXPECT_EQ(*word.tokenizer.encode("ab", kPlain), (Ids{0, 1}));
}

TEST(TokenizerTest, SpecialIdsComeFromTheConfiguration) {
  const Opened t(
      testdata("byte_level_bpe"),
      R"({"bos_token":"<s>","eos_token":{"content":"</s>"},"pad_token":null,"unk_token":"nothing"})");
  EXPECT_EQ(t.tokenizer.special_ids(), (SpecialIds{0, 1, {}, {}, 2}));  // <|end|> ends a turn
  const Opened chat(
      kTemptingUnigram,
      R"({"added_tokens_decoder":{"10":{"content":"<|im_end|>","special":true}},"eos_token":"</s>"})");
  EXPECT_EQ(chat.tokenizer.special_ids(), (SpecialIds{{}, 7, {}, 0, 10}));
  EXPECT_TRUE(chat.tokenizer.is_special(10));
  EXPECT_TRUE(chat.tokenizer.is_special(7));
  EXPECT_FALSE(chat.tokenizer.is_special(2));
}

TEST(TokenizerTest, FlagsOfTheConfigurationReplaceTheTemplateOfLlamaTokenizers) {
  const Opened t(testdata("byte_level_bpe"), R"({"bos_token":"<s>","eos_token":"</s>","add_bos_token":false,
      "add_eos_token":true,"tokenizer_class":"LlamaTokenizerFast"})");
  EXPECT_EQ(t.tokenizer.encode("")->size(), 1u);
  EXPECT_EQ((*t.tokenizer.encode(""))[0], 1u);
}

TEST(TokenizerTest, PiecesAndIdsLookEachOtherUp) {
  const Opened t(testdata("byte_level_bpe"));
  EXPECT_EQ(t.tokenizer.token_to_id("<|end|>"), 2u);
  EXPECT_EQ(t.tokenizer.id_to_token(2), "<|end|>");
  for (uint32_t id = 0; id < t.tokenizer.vocab_size(); ++id) {
    ASSERT_EQ(t.tokenizer.token_to_id(t.tokenizer.id_to_token(id)), id);
  }
  EXPECT_EQ(t.tokenizer.token_to_id("no such piece"), std::nullopt);
  EXPECT_EQ(t.tokenizer.id_to_token(t.tokenizer.vocab_size()), "");
  EXPECT_FALSE(t.tokenizer.is_special(t.tokenizer.vocab_size()));
}

TEST(TokenizerTest, BytesOfTokensPutTogetherAreTheTextInItsBytes) {
  const std::string text = "The sun \u00e9\u4e2d\U0001f600 12\n";
  const Opened byte_level(testdata("byte_level_bpe"));
  const Opened sentencepiece(testdata("sentencepiece_bpe"));
  for (const auto* t : {&byte_level, &sentencepiece}) {
    std::string bytes;
    const auto ids = t->tokenizer.encode(text, kPlain);
    for (const uint32_t id : *ids) bytes += t->tokenizer.token_bytes(id);
    EXPECT_EQ(bytes, t == &byte_level ? text : " " + text);
  }
  EXPECT_EQ(byte_level.tokenizer.token_bytes(9999), "");
  EXPECT_EQ(sentencepiece.tokenizer.token_bytes(*sentencepiece.tokenizer.token_to_id("<0xE2>")), "\xe2");
}

TEST(TokenizerTest, TheSameInputGivesTheSameBytes) {
  for (const char* name : {"byte_level_bpe", "unigram", "word_piece"}) {
    EXPECT_EQ(*compile_tokenizer(testdata(name)), *compile_tokenizer(testdata(name)));
  }
}

TEST(TokenizerTest, ATableCanBeMappedFromAFile) {
  const auto table = *compile_tokenizer(testdata("unigram"));
  const std::string path = testing::TempDir() + "/plow_tokenizer_test.bin";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(table.data()), static_cast<std::streamsize>(table.size()));
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  const auto mapped = Tokenizer::open(std::move(*file));
  ASSERT_TRUE(mapped.ok()) << mapped.error().message;
  EXPECT_EQ(*mapped->encode("The sun"), *Tokenizer::open(table)->encode("The sun"));
  std::ofstream(path, std::ios::binary)
      << "not a table at all, but long enough to hold a header; " << std::string(400, '.');
  const auto bad = Tokenizer::open(MappedFile::open(path).value());
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message.find(path), std::string::npos)
      << "the error names the file: " << bad.error().message;
}

// Not timed: something that takes time that grows with the square of the length would not end (10^12 steps).
TEST(TokenizerTest, AWordOfAMegabyteIsNoProblem) {
  const Opened byte_level(testdata("byte_level_bpe"));
  const Opened sentencepiece(testdata("sentencepiece_bpe"));
  const Opened unigram(testdata("unigram"));
  const Opened word_piece(testdata("word_piece"));
  for (const auto* t : {&byte_level, &sentencepiece, &unigram, &word_piece}) {
    for (const char* unit : {"a", " ", "\n", "\u4e2d", "ab ", "\u0301"}) {
      std::string text;
      while (text.size() < 1 << 20) text += unit;
      const auto ids = t->tokenizer.encode(text, kPlain);
      ASSERT_TRUE(ids.ok()) << ids.error().message;
      if (t != &byte_level) continue;
      EXPECT_EQ(t->tokenizer.decode(*ids, false), text);
    }
  }
}

TEST(TokenizerTest, ManyThreadsMayEncodeAtTheSameTime) {
  const Opened t(testdata("byte_level_bpe"));
  const std::string text = "The sun rises in the east, doesn't it? \u00e9\u4e2d 123";
  const Ids expected = *t.tokenizer.encode(text);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([&, n] {
      for (int i = 0; i < 200; ++i) wrong[n] += *t.tokenizer.encode(text) != expected;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(TokenStreamTest, ACharacterOfSeveralTokensComesWhole) {
  const Opened t(testdata("byte_level_bpe"));
  const Ids ids = *t.tokenizer.encode("\U0001f600", kPlain);
  ASSERT_EQ(ids.size(), 4u) << "the small vocabulary has no piece for it";
  TokenStream stream(t.tokenizer, false);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(stream.push(ids[i]), "");
  EXPECT_EQ(stream.push(ids[3]), "\U0001f600");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TokenStreamTest, WhatIsNoCharacterBecomesAReplacementAtTheEnd) {
  const Opened t(testdata("byte_level_bpe"));
  const Ids ids = *t.tokenizer.encode("\u4e2d", kPlain);
  TokenStream stream(t.tokenizer, false);
  stream.push(ids[0]);
  EXPECT_EQ(stream.finish(), "\ufffd");
  // The stream is as new.
  std::string text;
  for (const uint32_t id : ids) text += stream.push(id);
  EXPECT_EQ(text + stream.finish(), "\u4e2d");
}

TEST(TokenStreamTest, RunsOfByteTokensWaitForTheirEnd) {
  const Opened t(testdata("sentencepiece_bpe"));
  const auto byte = [&](const char* piece) { return *t.tokenizer.token_to_id(piece); };
  TokenStream stream(t.tokenizer, false);
  EXPECT_EQ(stream.push(byte("<0xC3>")), "");
  EXPECT_EQ(stream.push(byte("<0xA9>")), "") << "a bad byte could still follow and spoil the run";
  EXPECT_EQ(stream.push(byte("a")),
            "\u00e9"
            "a");
  stream.push(byte("<0xC3>"));
  stream.push(byte("<0xA9>"));
  stream.push(byte("<0xFF>"));
  EXPECT_EQ(stream.finish(), "\ufffd\ufffd\ufffd");
}

}  // namespace
}  // namespace plow
