#include "bundle/receipt.h"

#include "base/digest.h"
#include "base/testing/temp_dir.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

namespace plow {
namespace {

constexpr std::string_view kModel = "the bytes of a model";

std::string digest_of(std::string_view bytes) { return to_hex(sha256(std::as_bytes(std::span(bytes)))); }
std::string receipt_of(std::string_view bytes) {
  return fmt::format(R"({{"receipt":1,"model_pkt_sha256":"{}","accepted":true,"reason":""}})",
                     digest_of(bytes));
}

class ReceiptTest : public testing::Test {
 protected:
  ReceiptTest() { write("model.pkt", kModel); }
  void write(const char* name, std::string_view text) {
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
  }
  // What is said of a bundle with this receipt.
  std::string outcome(std::string_view receipt) {
    write("verify.json", receipt);
    return outcome();
  }
  std::string outcome() const {
    const Status status = check_receipt_of(folder_.path());
    if (status.ok()) return "accepted";
    EXPECT_EQ(status.error().error_class, ErrorClass::kVerification);
    EXPECT_NE(status.error().message.find("--no-receipt"), std::string::npos);
    return status.error().message;
  }

  const TempDir folder_;
};

TEST_F(ReceiptTest, OfTheBytesIsAccepted) { EXPECT_EQ(outcome(receipt_of(kModel)), "accepted"); }

TEST_F(ReceiptTest, OfOtherBytesIsRefused) {
  EXPECT_NE(outcome(receipt_of("the bytes of another")).find("of another model.pkt"), std::string::npos);
  EXPECT_EQ(outcome(receipt_of(kModel)), "accepted");
  write("model.pkt", "the bytes of a model, altered");
  EXPECT_NE(outcome().find("of another model.pkt"), std::string::npos);
}

TEST_F(ReceiptTest, ThatIsNotThereIsRefused) {
  EXPECT_NE(outcome().find("verify.json is not there"), std::string::npos);
}

TEST_F(ReceiptTest, ThatRefusesIsRefusedWithItsReason) {
  const std::string refusal = fmt::format(
      R"({{"receipt":1,"model_pkt_sha256":"{}","accepted":false,"reason":"packet 7"}})", digest_of(kModel));
  EXPECT_NE(outcome(refusal).find("plow_verify refuses the bundle: packet 7"), std::string::npos);
}

TEST_F(ReceiptTest, ThatIsNoneIsRefused) {
  const std::string digest = digest_of(kModel);
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{"), std::string("{}"), std::string("\0", 1),
        fmt::format(R"({{"receipt":2,"model_pkt_sha256":"{}","accepted":true}})", digest),
        fmt::format(R"({{"receipt":1,"model_pkt_sha256":"{}","accepted":"true"}})", digest),
        fmt::format(R"({{"model_pkt_sha256":"{}","accepted":true}})", digest), std::string(100000, '[')}) {
    EXPECT_NE(outcome(text).find("this is no receipt"), std::string::npos) << text.substr(0, 100);
  }
  EXPECT_NE(outcome(R"({"receipt":1,"accepted":true})").find("of another model.pkt"), std::string::npos);
}

}  // namespace
}  // namespace plow
