#include "text/encode_segments.h"

#include "text/tokenizer/compile_tokenizer.h"

#include <gtest/gtest.h>

namespace plow {
namespace {

using Ids = std::vector<uint32_t>;

// Letters, "ab" merged of two of them, and two control tokens of which one begins with the other.
constexpr const char* kJson =
    R"({"added_tokens":[{"id":10,"content":"<e>","special":true},{"id":11,"content":"<e>>","special":true}],
  "model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"<":3,"e":4,">":5},"merges":[["a","b"]]}})";

class EncodeSegments : public testing::Test {
 protected:
  Ids encode(const std::vector<PromptSegment>& segments) const {
    return encode_segments(tokenizer_, segments).value();
  }

  std::vector<std::byte> table_ = compile_tokenizer(kJson, {}).value();
  Tokenizer tokenizer_ = Tokenizer::open(table_).value();
};

TEST_F(EncodeSegments, OnlyTrustedTextHasControlTokens) {
  EXPECT_EQ(encode({{"<e>", true}, {"<e>", false}}), (Ids{10, 3, 4, 5}));
  EXPECT_EQ(encode({}), Ids{});
}

TEST_F(EncodeSegments, AControlTokenHalfOfDataIsNone) {
  EXPECT_EQ(encode({{"<", true}, {"e>", false}}), (Ids{3, 4, 5}));
  EXPECT_EQ(encode({{"<e", false}, {">", true}}), (Ids{3, 4, 5}));
}

TEST_F(EncodeSegments, TheLongestControlTokenIsTaken) {
  EXPECT_EQ(encode({{"<e>>", true}}), (Ids{11}));
  EXPECT_EQ(encode({{"<e>a", true}}), (Ids{10, 0}));
}

TEST_F(EncodeSegments, TextIsTokenisedAcrossBorders) {
  EXPECT_EQ(encode({{"a", true}, {"b", false}}), (Ids{2}));
  EXPECT_EQ(encode({{"a", true}, {"<e>", true}, {"b", false}}), (Ids{0, 10, 1}));
}

}  // namespace
}  // namespace plow
