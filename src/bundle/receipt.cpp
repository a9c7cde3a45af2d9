#include "bundle/receipt.h"

#include "base/digest.h"
#include "base/mapped_file.h"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace plow {
namespace {

namespace json = boost::json;

constexpr int64_t kReceiptFormat = 1;            // proofs/verifier/report.ml
constexpr uint64_t kMostReceiptBytes = 1 << 20;  // one has a line a program
constexpr const char* kWhatNext =
    "Compile it again with plowc, or give --no-receipt to run it although it is not proved to be right";

std::string text_under(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

}  // namespace

Result<Receipt> parse_receipt(std::string_view text) {
  boost::system::error_code error;
  const json::value root = json::parse(text, error);
  const json::object* object = error ? nullptr : root.if_object();
  const json::value* format = object != nullptr ? object->if_contains("receipt") : nullptr;
  const json::value* accepted = object != nullptr ? object->if_contains("accepted") : nullptr;
  if (format == nullptr || accepted == nullptr || !accepted->is_bool() || *format != kReceiptFormat)
    return verification_error("this is no receipt of plow_verify");
  return Receipt{accepted->as_bool(), text_under(*object, "reason"), text_under(*object, "model_pkt_sha256")};
}

Status check_receipt(const Receipt& receipt, std::span<const std::byte> model_pkt) {
  if (!receipt.accepted)
    return verification_error(fmt::format("plow_verify refuses the bundle: {}", receipt.reason));
  const std::string digest = to_hex(sha256(model_pkt));
  if (receipt.model_sha256 == digest) return {};
  return verification_error(fmt::format("the receipt is of another model.pkt (SHA-256 {}; this one has {})",
                                        receipt.model_sha256, digest));
}

Status check_receipt_of(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "verify.json";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return verification_error(fmt::format("{} is not there: plow_verify has not accepted this bundle. {}",
                                          path.string(), kWhatNext));
  }
  const auto check = [&]() -> Status {
    PLOW_TRY(const std::string text, read_text_file(path, kMostReceiptBytes));
    PLOW_TRY(const Receipt receipt, parse_receipt(text));
    PLOW_TRY(const MappedFile model, MappedFile::open(directory / "model.pkt"));
    return check_receipt(receipt, model.bytes());
  };
  const Status status = check();
  if (status.ok()) return {};
  return verification_error(fmt::format("{}: {}. {}", path.string(), status.error().message, kWhatNext));
}

}  // namespace plow
