#include "checkpoint/gguf_tokenizer.h"

#include "checkpoint/gguf_model.h"

#include <limits>

namespace plow {

namespace {

Result<std::optional<uint32_t>> token_id(const JsonFields& fields, std::string_view key, size_t n_tokens) {
  if (!fields.has(key)) return std::optional<uint32_t>();
  PLOW_TRY(const int64_t id, fields.integer(key, 0, static_cast<int64_t>(n_tokens) - 1));
  return std::optional<uint32_t>(static_cast<uint32_t>(id));
}

Result<std::optional<bool>> flag(const JsonFields& fields, std::string_view key) {
  if (!fields.has(key)) return std::optional<bool>();
  PLOW_TRY(const bool value, fields.boolean(key));
  return std::optional<bool>(value);
}

Status read_tables(const GgufFile& gguf, const std::string& source, GgufTokenizer& tokenizer) {
  PLOW_TRY(tokenizer.tokens, gguf.strings("tokenizer.ggml.tokens", source));
  PLOW_TRY(tokenizer.merges, gguf.strings("tokenizer.ggml.merges", source));
  PLOW_TRY(tokenizer.scores, gguf.numbers<float>("tokenizer.ggml.scores", GgufType::kFloat32, source));
  PLOW_TRY(tokenizer.token_types,
           gguf.numbers<int32_t>("tokenizer.ggml.token_type", GgufType::kInt32, source));
  const size_t n = tokenizer.tokens.size();
  if (n == 0) return input_error(source + ": 'tokenizer.ggml.tokens' is missing or empty");
  if (n > std::numeric_limits<int32_t>::max())
    return input_error(fmt::format("{}: {} tokens are too many", source, n));
  if (!tokenizer.scores.empty() && tokenizer.scores.size() != n) {
    return input_error(fmt::format("{}: 'tokenizer.ggml.scores' has {} entries for {} tokens", source,
                                   tokenizer.scores.size(), n));
  }
  if (!tokenizer.token_types.empty() && tokenizer.token_types.size() != n) {
    return input_error(fmt::format("{}: 'tokenizer.ggml.token_type' has {} entries for {} tokens", source,
                                   tokenizer.token_types.size(), n));
  }
  // Converters have written this table as signed and as unsigned bytes.
  const auto charsmap = gguf.arrays.find("tokenizer.ggml.precompiled_charsmap");
  if (charsmap != gguf.arrays.end()) {
    if (charsmap->second.element != GgufType::kInt8 && charsmap->second.element != GgufType::kUint8) {
      return input_error(source + ": 'tokenizer.ggml.precompiled_charsmap' must be an array of bytes");
    }
    tokenizer.precompiled_charsmap = GgufNumbers<uint8_t>(charsmap->second.bytes);
  }
  return {};
}

}  // namespace

Result<std::optional<GgufTokenizer>> gguf_tokenizer(const GgufFile& gguf, const JsonFields& fields,
                                                    const std::string& source) {
  if (!fields.has("tokenizer.ggml.model")) return std::optional<GgufTokenizer>();
  GgufTokenizer tokenizer;
  PLOW_TRY(tokenizer.model, fields.string("tokenizer.ggml.model"));
  PLOW_TRY(tokenizer.pre, fields.string_or("tokenizer.ggml.pre", ""));
  PLOW_TRY_STATUS(read_tables(gguf, source, tokenizer));
  const size_t n = tokenizer.tokens.size();
  PLOW_TRY(tokenizer.bos_id, token_id(fields, "tokenizer.ggml.bos_token_id", n));
  PLOW_TRY(tokenizer.eos_id, token_id(fields, "tokenizer.ggml.eos_token_id", n));
  PLOW_TRY(tokenizer.eot_id, token_id(fields, "tokenizer.ggml.eot_token_id", n));
  PLOW_TRY(tokenizer.eom_id, token_id(fields, "tokenizer.ggml.eom_token_id", n));
  PLOW_TRY(tokenizer.unknown_id, token_id(fields, "tokenizer.ggml.unknown_token_id", n));
  PLOW_TRY(tokenizer.padding_id, token_id(fields, "tokenizer.ggml.padding_token_id", n));
  PLOW_TRY(tokenizer.separator_id,
           token_id(fields, "tokenizer.ggml.seperator_token_id", n));  // spelt so by GGUF
  PLOW_TRY(tokenizer.cls_id, token_id(fields, "tokenizer.ggml.cls_token_id", n));
  PLOW_TRY(tokenizer.mask_id, token_id(fields, "tokenizer.ggml.mask_token_id", n));
  PLOW_TRY(tokenizer.add_bos, flag(fields, "tokenizer.ggml.add_bos_token"));
  PLOW_TRY(tokenizer.add_eos, flag(fields, "tokenizer.ggml.add_eos_token"));
  PLOW_TRY(tokenizer.add_space_prefix, flag(fields, "tokenizer.ggml.add_space_prefix"));
  PLOW_TRY(tokenizer.remove_extra_whitespaces, flag(fields, "tokenizer.ggml.remove_extra_whitespaces"));
  if (fields.has("tokenizer.chat_template")) {
    PLOW_TRY(tokenizer.chat_template, fields.string("tokenizer.chat_template"));
  }
  return std::optional<GgufTokenizer>(std::move(tokenizer));
}

}  // namespace plow
