// The decoder that the dense families share: embedding, layers of attention and a gated MLP around a residual
// stream, a head. A family says in a DecoderSpec which of the parts it has.
#pragma once

#include "base/error.h"
#include "models/model_source.h"
#include "models/rope.h"
#include "ops/glu/glu.h"

#include <vector>

namespace plow {

struct DecoderLayer {
  uint32_t window = 0;  // as KvStateRef::window
  uint32_t rope = 0;    // index into DecoderSpec::ropes
};

struct DecoderSpec {
  uint32_t vocab = 0, hidden = 0, intermediate = 0;
  uint32_t heads = 0, kv_heads = 0, head_dim = 0;
  uint32_t max_position = 0;
  Activation activation = Activation::kSilu;
  float eps = 0;
  float norm_offset = 0;  // norms multiply by gain + offset
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool qk_norm = false;      // a norm of each query and key head before the rotation
  bool norms_after = false;  // a norm of what attention and MLP give, before it is added
  bool tied = false;         // the head is the embedding
  float embedding_scale = 1;
  float attention_scale = 0;
  float attention_softcap = 0;  // 0: none
  float logit_softcap = 0;      // 0: none
  std::vector<Rope> ropes;
  std::vector<DecoderLayer> layers;
};

// The fields that all dense families name alike; eps, heads, sizes and tie_word_embeddings among them.
// `default_head_dim` 0: hidden_size / num_attention_heads. One layer entry a layer, without window. Ropes,
// activation and scales are left to the family.
struct DecoderDefaults {
  uint32_t head_dim = 0;
  bool tied = false;
  bool kv_heads_required = true;
};
Result<DecoderSpec> read_decoder(const JsonFields& config, const DecoderDefaults& defaults);

// "silu", "gelu", ...
Result<Activation> read_activation(const JsonFields& config, std::string_view key, const char* absent);

// The length of the window, 0 for null; absent fields mean `absent`.
Result<uint32_t> read_window(const JsonFields& config, std::string_view key, uint32_t absent);

// layer_types, if it is there: gives sliding layers the window. False when it is absent.
Result<bool> read_layer_types(const JsonFields& config, uint32_t window, DecoderSpec& spec);

// A field that must be false (or absent) because true is not supported.
Status expect_false(const JsonFields& config, std::string_view key);

// Errors: those of build_model. Fields of the configuration that nobody has read are refused here.
Result<OpGraph> build_decoder(ModelSource& source, const DecoderSpec& spec);

}  // namespace plow
