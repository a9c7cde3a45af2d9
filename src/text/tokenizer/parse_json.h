// The parts of tokenizer.json, one function each (parse_tokenizer_json.cpp puts them together).
#pragma once

#include "text/tokenizer/description.h"
#include "text/tokenizer/json_fields.h"

#include <vector>

namespace plow {

Result<ModelDescription> parse_model(const JsonElement& model);

// Each appends the components of `value`, with sequences flattened.
Status parse_normalizer(const JsonElement& value, std::vector<Component>& out);
Status parse_pre_tokenizer(const JsonElement& value, std::vector<Component>& out);
Status parse_decoder(const JsonElement& value, std::vector<Component>& out);

// What stands around a single text. Errors: ids that no token has are errors, as is a template without the
// text.
Result<std::vector<uint32_t>> parse_post_processor(const JsonElement& value);

}  // namespace plow
