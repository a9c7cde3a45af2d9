// Bad input: each gives one clear error, and no altered table is read out of bounds.
#include "base/digest.h"
#include "base/mapped_file.h"
#include "text/tokenizer/compile_tokenizer.h"
#include "text/tokenizer/table_format.h"
#include "text/tokenizer/tokenizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace plow {
namespace {

// A small tokenizer.json with one of its parts replaced.
struct Parts {
  std::string vocab = R"({"a":0,"b":1,"ab":2,"<s>":3})";
  std::string merges = R"([["a","b"]])";
  std::string model_fields = "";
  std::string added = R"([{"id":3,"content":"<s>","special":true}])";
  std::string more = "";

  std::string json() const {
    return fmt::format(
        R"({{"version":"1.0","added_tokens":{},{}"model":{{"type":"BPE",{}"vocab":{},"merges":{}}}}})", added,
        more, model_fields, vocab, merges);
  }
};

struct BadInput {
  const char* name;
  std::string json;
  const char* message;  // a part of it
};

std::string nested_sequence(int depth) {
  std::string text = R"({"type":"NFC"})";
  for (int i = 0; i < depth; ++i) text = fmt::format(R"({{"type":"Sequence","normalizers":[{}]}})", text);
  return fmt::format(R"("normalizer":{},)", text);
}

std::string nested_groups(int depth) {
  std::string text = "a";
  for (int i = 0; i < depth; ++i) text = "(" + text + ")";
  return fmt::format(
      R"("pre_tokenizer":{{"type":"Split","pattern":{{"Regex":"{}"}},"behavior":"Isolated","invert":false}},)",
      text);
}

std::string split_regex(std::string_view regex) {
  return fmt::format(
      R"("pre_tokenizer":{{"type":"Split","pattern":{{"Regex":"{}"}},"behavior":"Isolated","invert":false}},)",
      regex);
}

std::string unigram(std::string_view fields) {
  return fmt::format(R"({{"model":{{"type":"Unigram",{}}}}})", fields);
}

std::vector<BadInput> bad_inputs() {
  const std::string whole = Parts{}.json();
  const auto with_more = [](std::string more) { return Parts{.more = std::move(more)}.json(); };
  const auto with_model = [](std::string fields) { return Parts{.model_fields = std::move(fields)}.json(); };
  const auto with_vocab = [](std::string vocab) { return Parts{.vocab = std::move(vocab)}.json(); };
  const auto with_merges = [](std::string merges) { return Parts{.merges = std::move(merges)}.json(); };
  const auto with_added = [](std::string added) { return Parts{.added = std::move(added)}.json(); };
  return {
      {"an empty file", "", "tokenizer.json is not valid JSON"},
      {"a file that is cut", whole.substr(0, whole.size() / 2), "tokenizer.json is not valid JSON"},
      {"invalid UTF-8", Parts{.vocab = "{\"a\xff\":0}"}.json(), "tokenizer.json is not valid JSON"},
      {"arrays nested 100,000 deep", std::string(100000, '['), "tokenizer.json is not valid JSON"},
      {"an array in place of the object", "[1]", "must be an object"},
      {"no model", R"({"version":"1.0"})", "the field 'model' is missing"},
      {"another version", R"({"version":"2.0","model":{}})", "the version '2.0' is not known"},
      {"an unknown model", R"({"model":{"type":"Markov","vocab":{}}})",
       "model: the model type 'Markov' is not supported"},
      {"no vocabulary", R"({"model":{"type":"BPE","merges":[]}})", "model: the field 'vocab' is missing"},
      {"an empty vocabulary", Parts{.vocab = "{}", .merges = "[]", .added = "[]"}.json(),
       "the vocabulary is empty"},
      {"a vocabulary of the wrong type", with_vocab("[1,2]"), "model.vocab: must be an object"},
      {"an id that is a string", with_vocab(R"({"a":"0"})"), "model.vocab: must be a whole number"},
      {"a negative id", with_vocab(R"({"a":-1})"), "must be a whole number that is not negative"},
      {"a huge id", with_vocab(R"({"a":4000000000})"), "ids must be below 4194304"},
      {"one id twice", with_vocab(R"({"a":0,"b":0})"), "the pieces 'a' and 'b' have the same id 0"},
      {"one piece twice", with_vocab(R"({"a":0,"a":1})"), "the piece 'a' occurs twice"},
      {"a merge of a piece that is unknown", with_merges(R"([["a","z"]])"), "needs the piece 'z'"},
      {"a merge that makes an unknown piece", with_merges(R"([["b","a"]])"), "needs the piece 'ba'"},
      {"a merge that makes itself",
       Parts{.vocab = R"({"":0,"a":1,"<s>":3})", .merges = R"([["","a"]])"}.json(),
       "model.merges[0]: the merge of '' and 'a' has an empty side"},
      {"a merge of three", with_merges(R"(["a b c"])"), "must be two pieces with one space between them"},
      {"a merge that is a number", with_merges("[7]"), "model.merges[0]: must be a string"},
      {"a merge pair of one", with_merges(R"([["a"]])"), "model.merges[0]: must be a pair of pieces"},
      {"a merge that is shorter than the prefix", with_model(R"("continuing_subword_prefix":"##",)"),
       "shorter than the prefix"},
      {"dropout", with_model(R"("dropout":0.1,)"), "model.dropout: merge dropout makes the ids random"},
      {"byte_fallback that is a number", with_model(R"("byte_fallback":1,)"),
       "model.byte_fallback: must be true or false"},
      {"an added token without an id", with_added(R"([{"content":"x"}])"),
       "added_tokens[0]: the field 'id' is missing"},
      {"an added token with a huge id", with_added(R"([{"id":4294967295,"content":"x"}])"),
       "is not below 4194304"},
      {"an added token with a piece's id", with_added(R"([{"id":0,"content":"x"}])"),
       "which the vocabulary gives to 'a'"},
      {"an added token with another id than its piece", with_added(R"([{"id":7,"content":"a"}])"),
       "'a' is said to have the id 7, but the vocabulary gives it 0"},
      {"two added tokens with one id", with_added(R"([{"id":9,"content":"x"},{"id":9,"content":"y"}])"),
       "have the same id 9"},
      {"one added token with two ids", with_added(R"([{"id":9,"content":"x"},{"id":8,"content":"x"}])"),
       "occurs twice"},
      {"an added token that is too long",
       with_added(fmt::format(R"([{{"id":9,"content":"{}"}}])", std::string(2000, 'x'))),
       "is longer than 1024"},
      {"an unknown normalizer", with_more(R"("normalizer":{"type":"Rot13"},)"),
       "normalizer: the normalizer 'Rot13' is not supported"},
      {"an unknown pre-tokenizer", with_more(R"("pre_tokenizer":{"type":"Knife"},)"),
       "the pre-tokenizer 'Knife' is not supported"},
      {"an unknown decoder", with_more(R"("decoder":{"type":"CTC"},)"),
       "decoder: the decoder 'CTC' is not supported"},
      {"an unknown post-processor", with_more(R"("post_processor":{"type":"Glue"},)"),
       "the post-processor 'Glue' is not supported"},
      {"a normalizer without a type", with_more(R"("normalizer":{},)"),
       "normalizer: the field 'type' is missing"},
      {"a normalizer without its fields", with_more(R"("normalizer":{"type":"Strip"},)"),
       "the field 'strip_left' is missing"},
      {"sequences nested too deep", with_more(nested_sequence(40)), "sequences are nested deeper than 16"},
      {"a charsmap that is not base64",
       with_more(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"*"},)"), "is not base64"},
      {"a charsmap that is cut",
       with_more(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"AAEAAAA="},)"),
       "does not fit into it"},
      {"a replacement of nothing",
       with_more(R"("normalizer":{"type":"Replace","pattern":{"String":""},"content":"x"},)"),
       "an empty string matches everywhere"},
      {"a regular expression with an open bracket", with_more(split_regex("[a-")),
       "the regular expression '[a-' is not valid"},
      {"a regular expression with an unknown class", with_more(split_regex(R"(\\p{Klingon})")),
       "invalid character property name"},
      {"a regular expression that is too deep", with_more(nested_groups(5000)), "parse depth limit over"},
      {"a regular expression that is too long", with_more(split_regex(std::string(70000, 'a'))),
       "is longer than 65536"},
      {"an unknown behavior",
       with_more(
           R"("pre_tokenizer":{"type":"Split","pattern":{"String":"x"},"behavior":"Torn","invert":false},)"),
       "the split behavior 'Torn' is not known"},
      {"a replacement of two characters",
       with_more(R"("pre_tokenizer":{"type":"Metaspace","replacement":"ab"},)"), "must be one character"},
      {"pieces of length 0", with_more(R"("pre_tokenizer":{"type":"FixedLength","length":0},)"),
       "must not be 0"},
      {"a template without the text",
       with_more(R"("post_processor":{"type":"TemplateProcessing","single":[],"special_tokens":{}},)"),
       "must use the sequence A"},
      {"a template with an unknown token",
       with_more(
           R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}},{"Sequence":{"id":"A"}}],"special_tokens":{}},)"),
       "the field 'x' is missing"},
      {"a template with an id that no token has",
       with_more(R"("post_processor":{"type":"BertProcessing","cls":["x",99],"sep":["a",0]},)"),
       "it adds the id 99, which no token has"},
      {"a Unigram vocabulary of names", unigram(R"("vocab":["a"])"), "model.vocab[0]: must be an array"},
      {"a Unigram score that is a string", unigram(R"("vocab":[["a","x"]])"), "must be a number"},
      {"a Unigram unknown token that is not there", unigram(R"("vocab":[["a",0.0]],"unk_id":5)"),
       "5 is not below"},
      {"a Unigram piece that is too long",
       unigram(fmt::format(R"("vocab":[["{}",0.0]])", std::string(2000, 'x'))), "is longer than 1024"},
      {"WordPiece words without end",
       R"({"model":{"type":"WordPiece","unk_token":"a","continuing_subword_prefix":"","max_input_chars_per_word":1000000000,"vocab":{"a":0}}})",
       "is above 1000"},
  };
}

TEST(HostileTest, EveryBadTokenizerJsonGivesOneClearError) {
  ASSERT_TRUE(compile_tokenizer(Parts{}.json()).ok()) << compile_tokenizer(Parts{}.json()).error().message;
  for (const BadInput& bad : bad_inputs()) {
    const auto result = compile_tokenizer(bad.json);
    ASSERT_FALSE(result.ok()) << bad.name;
    EXPECT_NE(result.error().message.find(bad.message), std::string::npos)
        << bad.name << ": " << result.error().message;
    EXPECT_EQ(result.error().error_class, ErrorClass::kInput);
  }
}

TEST(HostileTest, BadConfigurationsAreRefusedByName) {
  const std::string json = Parts{}.json();
  const std::pair<const char*, const char*> cases[] = {
      {"[", "tokenizer_config.json is not valid JSON"},
      {"[]", "tokenizer_config.json: must be an object"},
      {R"({"bos_token":7})", "tokenizer_config.json: bos_token: must be a string"},
      {R"({"added_tokens_decoder":{"x":{"content":"y"}}})", "the key must be an id"},
      {R"({"added_tokens_decoder":{"0":{"content":"y"}}})", "which the vocabulary gives to 'a'"},
      {R"({"tokenizer_class":"LlamaTokenizer","add_bos_token":true})", "bos_token names no token"},
  };
  for (const auto& [config, message] : cases) {
    const auto result = compile_tokenizer(json, config);
    ASSERT_FALSE(result.ok()) << config;
    EXPECT_NE(result.error().message.find(message), std::string::npos) << result.error().message;
  }
}

TEST(HostileTest, ARegularExpressionThatBlowsUpIsAnErrorAndNoHang) {
  for (const char* regex : {"(a+)+$", "(a|aa)+$", "a(?=a*a*a*a*b)"}) {
    const auto table = compile_tokenizer(Parts{.more = split_regex(regex)}.json());
    ASSERT_TRUE(table.ok()) << table.error().message;
    const auto tokenizer = Tokenizer::open(*table);
    const auto ids = tokenizer->encode(std::string(20000, 'a') + "!");
    ASSERT_FALSE(ids.ok()) << regex;
    EXPECT_NE(ids.error().message.find("retry-limit"), std::string::npos) << ids.error().message;
  }
}

TEST(HostileTest, NormalizersThatDoubleTheTextAgainAndAgainAreStopped) {
  std::string steps;
  for (int i = 0; i < 60; ++i) {
    steps +=
        fmt::format(R"({}{{"type":"Replace","pattern":{{"String":"a"}},"content":"aa"}})", i > 0 ? "," : "");
  }
  const auto table = compile_tokenizer(
      Parts{.more = fmt::format(R"("normalizer":{{"type":"Sequence","normalizers":[{}]}},)", steps)}.json());
  ASSERT_TRUE(table.ok()) << table.error().message;
  const auto ids = Tokenizer::open(*table)->encode("a");
  ASSERT_FALSE(ids.ok());
  EXPECT_NE(ids.error().message.find("make the text longer than"), std::string::npos) << ids.error().message;
}

TEST(HostileTest, TextThatIsNotUtf8IsRefusedWithTheOffset) {
  const auto table = compile_tokenizer(Parts{}.json());
  const auto ids = Tokenizer::open(*table)->encode("ab\xff");
  ASSERT_FALSE(ids.ok());
  EXPECT_NE(ids.error().message.find("the byte at offset 2"), std::string::npos) << ids.error().message;
}

// ---- the table
// ------------------------------------------------------------------------------------------------------

std::vector<std::byte> read_table(const char* name) {
  const auto json =
      read_text_file(fmt::format("{}/src/text/tokenizer/testdata/{}.json", PLOW_SOURCE_DIR, name));
  return *compile_tokenizer(*json);
}

void set_digest(std::vector<std::byte>& table) {
  const Digest128 digest = xxh3_128(std::span<const std::byte>(table).subspan(kDigestBegin));
  std::memcpy(table.data() + offsetof(TableHeader, digest_low), &digest.low, 8);
  std::memcpy(table.data() + offsetof(TableHeader, digest_high), &digest.high, 8);
}

TEST(HostileTableTest, ATableThatIsCutAnywhereIsRefused) {
  const auto table = read_table("word_piece");
  for (size_t size = 0; size < table.size(); size += size < 600 ? 1 : 97) {
    const std::vector<std::byte> cut(table.begin(), table.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_FALSE(Tokenizer::open(cut).ok()) << size;
  }
}

TEST(HostileTableTest, AnAlteredByteIsSeenByTheDigest) {
  const auto table = read_table("word_piece");
  for (size_t at = 0; at < table.size(); at += 61) {
    auto altered = table;
    altered[at] ^= std::byte{0x20};
    const auto tokenizer = Tokenizer::open(altered);
    ASSERT_FALSE(tokenizer.ok()) << at;
  }
}

// Whoever alters a table can make its digest fit. Then it is refused or works on nonsense, but it reads
// nothing outside (which the asan-ubsan preset sees) and it returns.
TEST(HostileTableTest, AlteredTablesWithAGoodDigestAreRefusedOrHarmless) {
  std::mt19937 random(1);
  size_t opened = 0;
  for (const char* name : {"byte_level_bpe", "sentencepiece_bpe", "unigram_bytes", "word_piece"}) {
    const auto table = read_table(name);
    for (int round = 0; round < 300; ++round) {
      auto altered = table;
      // Half of them in the header, where the structure is.
      const size_t limit = round % 2 == 0 ? sizeof(TableHeader) : altered.size();
      for (int n = 0; n < 3; ++n)
        altered[kDigestBegin + random() % (limit - kDigestBegin)] = std::byte(random());
      set_digest(altered);
      const auto tokenizer = Tokenizer::open(altered);
      if (!tokenizer.ok()) continue;
      ++opened;
      const auto ids = tokenizer->encode("The sun \u00e9\u4e2d <s> 123 it's");
      if (ids.ok()) tokenizer->decode(*ids, false);
      for (uint32_t id = 0; id < tokenizer->vocab_size(); id += 37) tokenizer->token_bytes(id);
    }
  }
  EXPECT_GT(opened, 20u) << "some alterations must get past the checks, or the look-ups were not tried";
}

TEST(HostileTableTest, AnotherVersionIsNamed) {
  auto table = read_table("word_piece");
  table[offsetof(TableHeader, version)] = std::byte{9};
  set_digest(table);
  const auto tokenizer = Tokenizer::open(table);
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_NE(tokenizer.error().message.find("has version 9, this program reads version 1"), std::string::npos);
}

}  // namespace
}  // namespace plow
