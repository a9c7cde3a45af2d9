#include "models/decoder.h"

#include "graph/op_def.h"

#include <algorithm>

namespace plow {
namespace {

class DecoderBuilder {
 public:
  DecoderBuilder(ModelSource& source, const DecoderSpec& spec)
      : source_(source), tensors_(source.tensors), spec_(spec) {}

  Result<OpGraph> build() {
    positions_ = b_.step_input(StepColumn::kPositions);
    const NodeId ids = b_.step_input(StepColumn::kTokenIds);
    const NodeId sample_rows = b_.step_input(StepColumn::kSampleRows);
    const NodeId table = tensors_.matrix(b_, kEmbedding, spec_.vocab, spec_.hidden);
    add_rope_tables();
    NodeId x = b_.add(Op::kEmbed, {table, ids});
    if (spec_.embedding_scale != 1) x = b_.add(Op::kScale, {x}, {attribute_bits(spec_.embedding_scale)});
    for (uint32_t layer = 0; layer < spec_.layers.size(); ++layer) x = add_layer(layer, x);
    b_.set_layer(Node::kNoLayer);
    const NodeId rows = b_.add(Op::kGatherRows, {x, sample_rows});
    const NodeId tokens = add_head(norm("model.norm", rows, spec_.hidden), table);
    PLOW_TRY_STATUS(tensors_.check());
    return b_.finish(tokens, spec_.vocab, spec_.hidden, static_cast<uint32_t>(spec_.layers.size()),
                     spec_.max_position);
  }

 private:
  static constexpr const char* kEmbedding = "model.embed_tokens.weight";
  static constexpr const char* kHead = "lm_head.weight";

  // One for each rope that a layer uses.
  void add_rope_tables() {
    angles_.resize(spec_.ropes.size());
    for (size_t i = 0; i < spec_.ropes.size(); ++i) {
      const bool used =
          std::ranges::any_of(spec_.layers, [&](const DecoderLayer& layer) { return layer.rope == i; });
      if (!used) continue;
      const Rope& rope = spec_.ropes[i];
      const NodeId frequencies = b_.constant(fmt::format("rope{}.inv_freq", i), DType::kF64, 1,
                                             spec_.head_dim / 2, rope.inverse_frequencies);
      angles_[i] = b_.add(Op::kRopeTable, {frequencies, positions_}, {attribute_bits(rope.attention_factor)});
    }
  }

  NodeId norm(const std::string& name, NodeId x, uint32_t group) {
    const NodeId gain = tensors_.vector(b_, name + ".weight", group);
    return b_.add(Op::kRmsNorm, {x, gain},
                  {attribute_bits(spec_.eps), attribute_bits(spec_.norm_offset), group});
  }

  NodeId linear(const std::string& name, NodeId x, uint32_t outputs, uint32_t inputs, bool bias) {
    const NodeId y = b_.add(Op::kLinear, {x, tensors_.matrix(b_, name + ".weight", outputs, inputs)});
    return bias ? b_.add(Op::kBiasAdd, {y, tensors_.vector(b_, name + ".bias", outputs)}) : y;
  }

  NodeId add_layer(uint32_t layer, NodeId x) {
    b_.set_layer(layer);
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    NodeId y = attention(layer, prefix + "self_attn.", norm(prefix + "input_layernorm", x, spec_.hidden));
    if (spec_.norms_after) y = norm(prefix + "post_attention_layernorm", y, spec_.hidden);
    x = b_.add(Op::kAdd, {x, y});
    // The names are by place: what comes before the MLP comes after attention where attention has no norm of
    // its own after it.
    const char* before_mlp = spec_.norms_after ? "pre_feedforward_layernorm" : "post_attention_layernorm";
    y = mlp(prefix + "mlp.", norm(prefix + before_mlp, x, spec_.hidden));
    if (spec_.norms_after) y = norm(prefix + "post_feedforward_layernorm", y, spec_.hidden);
    return b_.add(Op::kAdd, {x, y});
  }

  NodeId attention(uint32_t layer, const std::string& prefix, NodeId x) {
    const uint32_t q_cols = spec_.heads * spec_.head_dim;
    const uint32_t kv_cols = spec_.kv_heads * spec_.head_dim;
    const DecoderLayer& shape = spec_.layers[layer];
    const NodeId angles = angles_[shape.rope];
    NodeId q = linear(prefix + "q_proj", x, q_cols, spec_.hidden, spec_.qkv_bias);
    NodeId k = linear(prefix + "k_proj", x, kv_cols, spec_.hidden, spec_.qkv_bias);
    const NodeId v = linear(prefix + "v_proj", x, kv_cols, spec_.hidden, spec_.qkv_bias);
    if (spec_.qk_norm) {
      q = norm(prefix + "q_norm", q, spec_.head_dim);
      k = norm(prefix + "k_norm", k, spec_.head_dim);
    }
    q = b_.add(Op::kRope, {q, angles}, {spec_.head_dim});
    k = b_.add(Op::kRope, {k, angles}, {spec_.head_dim});
    const NodeId state =
        b_.kv_state({layer, spec_.kv_heads, spec_.head_dim, shape.window}, source_.options.kv_dtype);
    const NodeId kv = b_.add(Op::kKvAppend, {k, v, state}, {spec_.head_dim});
    const NodeId y = b_.add(Op::kAttention, {q, kv},
                            {spec_.head_dim, shape.window, attribute_bits(spec_.attention_scale),
                             attribute_bits(spec_.attention_softcap)});
    return linear(prefix + "o_proj", y, spec_.hidden, q_cols, spec_.output_bias);
  }

  NodeId mlp(const std::string& prefix, NodeId x) {
    const NodeId gate = linear(prefix + "gate_proj", x, spec_.intermediate, spec_.hidden, spec_.mlp_bias);
    const NodeId up = linear(prefix + "up_proj", x, spec_.intermediate, spec_.hidden, spec_.mlp_bias);
    const NodeId y = b_.add(Op::kGlu, {gate, up}, {static_cast<uint32_t>(spec_.activation)});
    return linear(prefix + "down_proj", y, spec_.hidden, spec_.intermediate, spec_.mlp_bias);
  }

  NodeId add_head(NodeId x, NodeId table) {
    if (spec_.tied) tensors_.copy_of(kHead, kEmbedding);
    const NodeId head = spec_.tied ? table : tensors_.matrix(b_, kHead, spec_.vocab, spec_.hidden);
    NodeId logits = b_.add(Op::kLinear, {x, head});
    if (spec_.logit_softcap > 0)
      logits = b_.add(Op::kSoftCap, {logits}, {attribute_bits(spec_.logit_softcap)});
    return b_.add(Op::kSample, {logits});
  }

  ModelSource& source_;
  TensorClaims& tensors_;
  const DecoderSpec& spec_;
  GraphBuilder b_;
  NodeId positions_;
  std::vector<NodeId> angles_;  // by rope
};

}  // namespace

Result<OpGraph> build_decoder(ModelSource& source, const DecoderSpec& spec) {
  PLOW_TRY_STATUS(source.reader.check_all_read());
  return DecoderBuilder(source, spec).build();
}

}  // namespace plow
