// A table of any bytes. Its digest is made to fit first, else nothing behind the digest would be reached.
#include "base/check.h"
#include "base/digest.h"
#include "text/tokenizer/table_format.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/utf8.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> table(size);
  if (size > 0) std::memcpy(table.data(), data, size);
  if (size >= sizeof(plow::TableHeader)) {
    const uint64_t bytes = size;
    std::memcpy(table.data() + offsetof(plow::TableHeader, table_bytes), &bytes, sizeof(bytes));
    const auto digest = plow::xxh3_128(std::span<const std::byte>(table).subspan(plow::kDigestBegin));
    std::memcpy(table.data() + offsetof(plow::TableHeader, digest_low), &digest.low, 8);
    std::memcpy(table.data() + offsetof(plow::TableHeader, digest_high), &digest.high, 8);
  }
  const auto tokenizer = plow::Tokenizer::open(table);
  if (!tokenizer.ok()) return 0;
  const auto ids = tokenizer->encode("The sun \xc3\xa9\xe4\xb8\xad <s> 123 it's\n", {true, true});
  if (ids.ok()) {
    const std::string text = tokenizer->decode(*ids, false);
    PLOW_CHECK(!plow::first_invalid_utf8(text), "decoded text is not UTF-8");
  }
  for (uint32_t id = 0; id < std::min<uint32_t>(tokenizer->vocab_size(), 2000); id += 7)
    tokenizer->token_bytes(id);
  return 0;
}
