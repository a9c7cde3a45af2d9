// Small tokenizers against what the library `tokenizers` makes of the same texts (testdata/, by
// tools/make_tokenizer_testdata.py).
#include "base/mapped_file.h"
#include "text/tokenizer/compile_tokenizer.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/utf8.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <simdjson.h>

namespace plow {
namespace {

namespace dom = simdjson::dom;

const std::string kTestdata = std::string(PLOW_SOURCE_DIR) + "/src/text/tokenizer/testdata/";

std::vector<uint32_t> ids_of(dom::element value) {
  std::vector<uint32_t> ids;
  for (const auto id : value.get_array()) ids.push_back(static_cast<uint32_t>(uint64_t(id)));
  return ids;
}

// The text of the stream; every part of it must be whole characters.
std::string stream_text(const Tokenizer& tokenizer, const std::vector<uint32_t>& ids, bool skip_special) {
  TokenStream stream(tokenizer, skip_special);
  std::string text;
  for (const uint32_t id : ids) {
    const std::string part = stream.push(id);
    EXPECT_FALSE(first_invalid_utf8(part)) << "a part of a stream cuts a character";
    text += part;
  }
  return text + stream.finish();
}

void check_decoded(const Tokenizer& tokenizer, const std::vector<uint32_t>& ids, bool skip_special,
                   dom::element expected) {
  const std::string text = tokenizer.decode(ids, skip_special);
  EXPECT_EQ(stream_text(tokenizer, ids, skip_special), text);
  if (expected.is_null()) return;
  EXPECT_EQ(text, std::string_view(expected));
}

// One case: [text, ids, plain ids, decoded, decoded without special tokens].
void check_case(const Tokenizer& tokenizer, dom::element one) {
  const std::string text(std::string_view(one.at(0)));
  SCOPED_TRACE("text: " + text);
  const auto ids = tokenizer.encode(text, {.add_special_tokens = true, .parse_special = true});
  ASSERT_TRUE(ids.ok()) << ids.error().message;
  EXPECT_EQ(*ids, ids_of(one.at(1)));
  const auto plain = tokenizer.encode(text, {.add_special_tokens = false, .parse_special = false});
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  if (one.at(2).is_null()) {  // the library's model makes control tokens of this text
    for (const uint32_t id : *plain)
      EXPECT_TRUE(!tokenizer.is_special(id) || id == tokenizer.special_ids().unk) << id;
  } else {
    EXPECT_EQ(*plain, ids_of(one.at(2)));
  }
  check_decoded(tokenizer, ids_of(one.at(1)), false, one.at(3));
  check_decoded(tokenizer, ids_of(one.at(1)), true, one.at(4));
}

class GoldenTest : public testing::TestWithParam<const char*> {};

TEST_P(GoldenTest, TokenizersThatWereTrainedGiveTheLibrarysIdsAndText) {
  const auto json = read_text_file(kTestdata + GetParam() + ".json");
  ASSERT_TRUE(json.ok());
  const auto table = compile_tokenizer(*json);
  ASSERT_TRUE(table.ok()) << table.error().message;
  const auto tokenizer = Tokenizer::open(*table);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  dom::parser parser;
  const dom::element cases = parser.load(kTestdata + GetParam() + ".golden.json");
  size_t count = 0;
  for (const auto one : cases.get_array()) {
    check_case(*tokenizer, one);
    ++count;
  }
  EXPECT_GE(count, 140u);
}

INSTANTIATE_TEST_SUITE_P(Trained, GoldenTest,
                         testing::Values("byte_level_bpe", "sentencepiece_bpe", "sentencepiece_unk",
                                         "sentencepiece_fused", "unigram", "unigram_bytes", "word_piece",
                                         "word_end_bpe"),
                         [](const auto& one) { return std::string(one.param); });

TEST(ComponentTest, EveryComponentGivesTheLibrarysIdsAndText) {
  dom::parser parser;
  const dom::element file = parser.load(kTestdata + "components.json");
  const std::string model = simdjson::minify(file["model"].value());
  size_t count = 0;
  for (const auto entry : file["tokenizers"].get_array()) {
    SCOPED_TRACE("component: " + std::string(std::string_view(entry["name"])));
    std::string parts = simdjson::minify(entry["parts"].value());
    parts.pop_back();  // the closing brace
    const std::string json =
        fmt::format(R"({}{}"version":"1.0","model":{}}})", parts, parts == "{" ? "" : ",", model);
    const auto table = compile_tokenizer(json);
    ASSERT_TRUE(table.ok()) << table.error().message;
    const auto tokenizer = Tokenizer::open(*table);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    for (const auto one : entry["cases"].get_array()) check_case(*tokenizer, one);
    ++count;
  }
  EXPECT_GE(count, 75u);
}

}  // namespace
}  // namespace plow
