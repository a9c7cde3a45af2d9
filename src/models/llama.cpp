// Llama 1 to 3.3 and what shares its architecture (SmolLM2). Fields: transformers' LlamaConfig and
// modeling_llama.py (5.24).
#include "models/decoder.h"

namespace plow {

Result<OpGraph> build_llama(ModelSource& source) {
  const JsonFields& config = source.config;
  PLOW_TRY(DecoderSpec spec, read_decoder(config, {.kv_heads_required = false}));
  PLOW_TRY(spec.activation, read_activation(config, "hidden_act", "silu"));
  PLOW_TRY(spec.qkv_bias, config.boolean_or("attention_bias", false));
  spec.output_bias = spec.qkv_bias;
  PLOW_TRY(spec.mlp_bias, config.boolean_or("mlp_bias", false));
  PLOW_TRY(Rope rope, read_rope(config, {10000.0, spec.head_dim, spec.max_position}));
  spec.ropes = {std::move(rope)};
  PLOW_TRY_STATUS(expect_false(config, "rope_interleaved"));  // SmolLM2 says it
  config.ignore({"is_llama_config"});                         // likewise
  return build_decoder(source, spec);
}

}  // namespace plow
