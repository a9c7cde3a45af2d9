// Mistral 7B, Nemo, Small (text). Fields: transformers' MistralConfig and modeling_mistral.py (5.24): every
// layer has the window, which is 4096 where the field is absent and none where it is null.
#include "models/decoder.h"

namespace plow {

Result<OpGraph> build_mistral(ModelSource& source) {
  const JsonFields& config = source.config;
  PLOW_TRY(DecoderSpec spec, read_decoder(config, {}));
  PLOW_TRY(spec.activation, read_activation(config, "hidden_act", "silu"));
  PLOW_TRY_STATUS(expect_false(config, "attention_bias"));
  PLOW_TRY(const uint32_t window, read_window(config, "sliding_window", 4096));
  for (DecoderLayer& layer : spec.layers) layer.window = window;
  PLOW_TRY(Rope rope, read_rope(config, {10000.0, spec.head_dim, spec.max_position}));
  spec.ropes = {std::move(rope)};
  return build_decoder(source, spec);
}

}  // namespace plow
