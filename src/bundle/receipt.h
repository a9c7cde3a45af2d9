// verify.json: the receipt that plow_verify gave for the bytes of a model.pkt, which says for which steps
// they are proved to be right. The receipt is bound to the file by a digest of it, and the file knows nothing
// of the receipt. What is in it: proofs/verifier/report.ml.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace plow {

struct Receipt {
  bool accepted = false;
  std::string reason;        // when it was refused: which check, which packets
  std::string model_sha256;  // of the bytes that were read
};

// Errors (kVerification): not what plow_verify writes.
Result<Receipt> parse_receipt(std::string_view text);

// Errors (kVerification): the receipt refuses, or is of other bytes than `model_pkt`.
Status check_receipt(const Receipt& receipt, std::span<const std::byte> model_pkt);

// The same of a bundle's directory. Errors (kVerification) besides: there is no receipt.
Status check_receipt_of(const std::filesystem::path& directory);

}  // namespace plow
