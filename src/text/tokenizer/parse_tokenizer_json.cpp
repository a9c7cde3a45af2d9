// tokenizer.json and tokenizer_config.json -> TokenizerDescription (tokenizer/serialization.rs of
// `tokenizers`; the second file belongs to `transformers`).
#include "text/tokenizer/parse_json.h"

#include <fmt/format.h>

#include <charconv>

namespace plow {

namespace {

Result<AddedToken> parse_added_token(const JsonElement& value, uint64_t id) {
  AddedToken token;
  PLOW_TRY(const JsonElement content, value.at("content"));
  PLOW_TRY(const std::string_view text, content.string());
  token.content = text;
  if (id >= kMaxTokens) return value.error(fmt::format("the id {} is not below {}", id, kMaxTokens));
  token.id = static_cast<uint32_t>(id);
  PLOW_TRY(token.special, value.boolean_or("special", false));
  PLOW_TRY(const bool single_word, value.boolean_or("single_word", false));
  PLOW_TRY(const bool lstrip, value.boolean_or("lstrip", false));
  PLOW_TRY(const bool rstrip, value.boolean_or("rstrip", false));
  PLOW_TRY(const bool normalized, value.boolean_or("normalized", !token.special));
  token.flags = (single_word ? kSingleWord : 0u) | (lstrip ? kLeftStrip : 0u) | (rstrip ? kRightStrip : 0u) |
                (normalized ? kNormalizedToken : 0u);
  return token;
}

Status parse_added_tokens(const JsonElement& value, TokenizerDescription& description) {
  PLOW_TRY(const auto array, value.array());
  size_t index = 0;
  for (const auto element : array) {
    const JsonElement item = value.item(element, index++);
    PLOW_TRY(const JsonElement id, item.at("id"));
    PLOW_TRY(const uint64_t number, id.number());
    PLOW_TRY(AddedToken token, parse_added_token(item, number));
    if (auto status = add_token(description, std::move(token)); !status.ok())
      return status.error().at(item.path);
  }
  return {};
}

Status parse_components(const JsonElement& root, TokenizerDescription& description) {
  if (const auto value = root.find("normalizer")) {
    PLOW_TRY_STATUS(parse_normalizer(*value, description.normalizers));
  }
  if (const auto value = root.find("pre_tokenizer")) {
    PLOW_TRY_STATUS(parse_pre_tokenizer(*value, description.pre_tokenizers));
  }
  if (const auto value = root.find("decoder")) {
    description.has_decoder = true;
    PLOW_TRY_STATUS(parse_decoder(*value, description.decoders));
  }
  if (const auto value = root.find("post_processor")) {
    PLOW_TRY(description.post_template, parse_post_processor(*value));
  }
  return {};
}

// "bos_token": "<s>" or {"content": "<s>", ...}.
Result<std::optional<uint32_t>> parse_token_name(const JsonElement& config, std::string_view key,
                                                 const TokenizerDescription& description) {
  auto value = config.find(key);
  if (value && value->is_object()) value = value->find("content");
  if (!value) return std::optional<uint32_t>{};
  PLOW_TRY(const std::string_view name, value->string());
  return description.find(name);
}

// transformers (4.x, LlamaTokenizerFast and its kin) replaces the post-processor when add_bos_token or
// add_eos_token is stated.
Status apply_add_flags(const JsonElement& config, TokenizerDescription& description) {
  if (!config.find("add_bos_token") && !config.find("add_eos_token")) return {};
  PLOW_TRY(const std::string tokenizer_class, config.string_or("tokenizer_class", ""));
  if (!tokenizer_class.starts_with("Llama") && !tokenizer_class.starts_with("Gemma")) return {};
  PLOW_TRY(const bool add_bos, config.boolean_or("add_bos_token", true));
  PLOW_TRY(const bool add_eos, config.boolean_or("add_eos_token", false));
  const SpecialIds& special = description.special;
  if (add_bos && !special.bos) return config.error("add_bos_token is true, but bos_token names no token");
  if (add_eos && !special.eos) return config.error("add_eos_token is true, but eos_token names no token");
  description.post_template.clear();
  if (add_bos) description.post_template.push_back(*special.bos);
  description.post_template.push_back(kTemplateText);
  if (add_eos) description.post_template.push_back(*special.eos);
  return {};
}

// Tokens of added_tokens_decoder that tokenizer.json does not have.
Status parse_added_tokens_decoder(const JsonElement& value, TokenizerDescription& description) {
  PLOW_TRY(const auto fields, value.object());
  for (const auto field : fields) {
    const JsonElement item = {field.value, fmt::format("{}.{}", value.path, field.key)};
    uint32_t id = 0;
    const char* end = field.key.data() + field.key.size();
    if (const auto parsed = std::from_chars(field.key.data(), end, id);
        parsed.ec != std::errc() || parsed.ptr != end) {
      return item.error("the key must be an id");
    }
    PLOW_TRY(AddedToken token, parse_added_token(item, id));
    if (description.added_vocabulary.find(token.content) == token.id) continue;
    if (auto status = add_token(description, std::move(token)); !status.ok())
      return status.error().at(item.path);
  }
  return {};
}

Status parse_config(const JsonElement& config, TokenizerDescription& description) {
  if (!config.is_object()) return config.error("must be an object");
  if (const auto value = config.find("added_tokens_decoder")) {
    PLOW_TRY_STATUS(parse_added_tokens_decoder(*value, description));
  }
  SpecialIds& special = description.special;
  PLOW_TRY(special.bos, parse_token_name(config, "bos_token", description));
  PLOW_TRY(special.eos, parse_token_name(config, "eos_token", description));
  PLOW_TRY(special.pad, parse_token_name(config, "pad_token", description));
  PLOW_TRY(const auto unk, parse_token_name(config, "unk_token", description));
  if (unk) special.unk = unk;
  return apply_add_flags(config, description);
}

Result<JsonElement> parse_document(simdjson::dom::parser& parser, std::string_view text,
                                   std::string_view file) {
  simdjson::dom::element element;
  const auto error = parser.parse(text.data(), text.size()).get(element);
  if (error != simdjson::SUCCESS) {
    return input_error(fmt::format("{} is not valid JSON ({})", file, simdjson::error_message(error)));
  }
  return JsonElement{element, ""};
}

Result<TokenizerDescription> parse_root(const JsonElement& root) {
  TokenizerDescription description;
  PLOW_TRY(const std::string version, root.string_or("version", "1.0"));
  if (version != "1.0") return root.error(fmt::format("the version '{}' is not known; 1.0 is", version));
  PLOW_TRY(const JsonElement model, root.at("model"));
  PLOW_TRY(description.model, parse_model(model));
  if (const auto added = root.find("added_tokens")) PLOW_TRY_STATUS(parse_added_tokens(*added, description));
  PLOW_TRY_STATUS(parse_components(root, description));
  description.special.unk = description.model.unk;
  return description;
}

Status check_template(const TokenizerDescription& description) {
  for (const uint32_t id : description.post_template) {
    if (id == kTemplateText || description.model.vocabulary.has(id) || description.added_vocabulary.has(id)) {
      continue;
    }
    return input_error(fmt::format("post_processor: it adds the id {}, which no token has", id));
  }
  return {};
}

}  // namespace

Result<TokenizerDescription> parse_tokenizer_json(std::string_view tokenizer_json,
                                                  std::string_view config_json) {
  simdjson::dom::parser parser;
  PLOW_TRY(const JsonElement root, parse_document(parser, tokenizer_json, "tokenizer.json"));
  auto description = parse_root(root);
  if (!description.ok()) return description.error().at("tokenizer.json");
  if (!config_json.empty()) {
    simdjson::dom::parser config_parser;
    PLOW_TRY(const JsonElement config, parse_document(config_parser, config_json, "tokenizer_config.json"));
    if (auto status = parse_config(config, *description); !status.ok()) {
      return status.error().at("tokenizer_config.json");
    }
  }
  if (auto status = check_template(*description); !status.ok()) return status.error().at("tokenizer.json");
  const SpecialIds& special = description->special;
  for (const auto& id : {special.bos, special.eos, special.pad}) {
    if (id) description->control.push_back(*id);
  }
  find_end_of_turn(*description);
  return description;
}

}  // namespace plow
