// tokenizer.json, and behind a NUL byte tokenizer_config.json, of any bytes: an error or a table that opens
// and encodes.
#include "base/check.h"
#include "text/tokenizer/compile_tokenizer.h"
#include "text/tokenizer/tokenizer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t nul = std::min(input.find('\0'), size);
  const std::string_view config = nul < size ? input.substr(nul + 1) : std::string_view();
  const auto table = plow::compile_tokenizer(input.substr(0, nul), config);
  if (!table.ok()) return 0;
  const auto tokenizer = plow::Tokenizer::open(*table);
  PLOW_CHECK(tokenizer.ok(), "a table that was just made: {}", tokenizer.error().message);
  const auto ids = tokenizer->encode("The sun \xc3\xa9\xe4\xb8\xad <s> 123 it's\n");
  if (ids.ok()) tokenizer->decode(*ids, true);
  return 0;
}
