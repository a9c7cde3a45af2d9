#include "text/tokenizer/compile_tokenizer.h"

#include "text/tokenizer/description.h"
#include "text/tokenizer/tokenizer.h"

namespace plow {

namespace {

// A table is handed out only if the runtime takes it: the regular expressions are compiled there.
Result<std::vector<std::byte>> write_checked(const Result<TokenizerDescription>& description) {
  if (!description.ok()) return description.error();
  PLOW_TRY(std::vector<std::byte> table, write_table(*description));
  const auto tokenizer = Tokenizer::open(table);
  if (!tokenizer.ok()) return tokenizer.error();
  return table;
}

}  // namespace

Result<std::vector<std::byte>> compile_tokenizer(std::string_view tokenizer_json,
                                                 std::string_view tokenizer_config_json) {
  return write_checked(parse_tokenizer_json(tokenizer_json, tokenizer_config_json));
}

Result<std::vector<std::byte>> compile_tokenizer(const GgufTokenizerSource& source) {
  return write_checked(describe_gguf(source));
}

}  // namespace plow
