// A small transformer for the tests of the stages: every operator that dense models use, sizes that divide nothing evenly.
#pragma once

#include "graph/builder.h"
#include "graph/op_def.h"

namespace plow {

struct ToyShape {
  uint32_t layers = 2, hidden = 40, heads = 3, kv_heads = 1, head_dim = 12, ffn = 56, vocab = 101;
  uint32_t window = 0;  // of odd layers; 0: none
  // Every fused operator in place of the primitive ones, and queries of the last layer only where rows are sampled. The
  // functions are others: layers do not have the same parts.
  bool fused = false;
  DType matrices = DType::kBf16;
};

inline Attributes toy_attributes(std::initializer_list<uint32_t> words) {
  Attributes attributes{};
  size_t i = 0;
  for (const uint32_t word : words) attributes[i++] = word;
  return attributes;
}

class ToyModel {
 public:
  explicit ToyModel(const ToyShape& shape) : shape_(shape) {}

  Result<OpGraph> build() {
    const NodeId ids = builder_.step_input(StepColumn::kTokenIds);
    const NodeId positions = builder_.step_input(StepColumn::kPositions);
    const NodeId sample_rows = builder_.step_input(StepColumn::kSampleRows);
    std::vector<double> frequencies;
    for (uint32_t j = 0; j < shape_.head_dim / 2; ++j) frequencies.push_back(1.0 / (1 + j));
    const NodeId inv_freq = builder_.constant("inv_freq", DType::kF64, 1, shape_.head_dim / 2, frequencies);
    const NodeId angles = builder_.add(Op::kRopeTable, {inv_freq, positions}, toy_attributes({attribute_bits(1.0f)}));
    const NodeId embedding = builder_.weight("embed", shape_.matrices, shape_.vocab, shape_.hidden);
    NodeId x = builder_.add(Op::kEmbed, {embedding, ids});
    x = builder_.add(Op::kScale, {x}, toy_attributes({attribute_bits(6.25f)}));
    for (uint32_t layer = 0; layer < shape_.layers; ++layer) {
      builder_.set_layer(layer);
      if (!shape_.fused) {
        x = add_layer(layer, x, angles);
      } else if (layer + 1 < shape_.layers) {
        x = add_fused_layer(layer, x, angles);
      } else {
        x = add_last_fused_layer(layer, x, angles, sample_rows);
      }
    }
    builder_.set_layer(Node::kNoLayer);
    NodeId rows = norm("norm", x, shape_.hidden);
    if (!shape_.fused) rows = builder_.add(Op::kGatherRows, {rows, sample_rows});
    rows = builder_.add(Op::kLinear, {rows, embedding});
    rows = builder_.add(Op::kSoftCap, {rows}, toy_attributes({attribute_bits(30.0f)}));
    return builder_.finish(builder_.add(Op::kSample, {rows}), shape_.vocab, shape_.hidden, shape_.layers, 4096);
  }

 private:
  NodeId norm(const std::string& name, NodeId x, uint32_t group) {
    const NodeId gain = builder_.weight(name, DType::kF32, 1, group);
    return builder_.add(Op::kRmsNorm, {x, gain}, toy_attributes({attribute_bits(1e-5f), attribute_bits(0.0f), group}));
  }
  NodeId linear(const std::string& name, NodeId x, uint32_t outputs, uint32_t inputs) {
    return builder_.add(Op::kLinear, {x, builder_.weight(name, shape_.matrices, outputs, inputs)});
  }

  NodeId add_layer(uint32_t layer, NodeId x, NodeId angles) {
    const std::string p = "layer" + std::to_string(layer) + ".";
    const uint32_t q_cols = shape_.heads * shape_.head_dim, kv_cols = shape_.kv_heads * shape_.head_dim;
    const uint32_t window = layer % 2 == 1 ? shape_.window : 0;
    const NodeId h = norm(p + "norm1", x, shape_.hidden);
    NodeId q = linear(p + "q", h, q_cols, shape_.hidden);
    q = builder_.add(Op::kBiasAdd, {q, builder_.weight(p + "q_bias", DType::kF32, 1, q_cols)});
    q = builder_.add(Op::kRope, {norm(p + "q_norm", q, shape_.head_dim), angles}, toy_attributes({shape_.head_dim}));
    const NodeId k = builder_.add(Op::kRope, {linear(p + "k", h, kv_cols, shape_.hidden), angles}, toy_attributes({shape_.head_dim}));
    const NodeId v = linear(p + "v", h, kv_cols, shape_.hidden);
    const NodeId state = builder_.kv_state({layer, shape_.kv_heads, shape_.head_dim, window});
    const NodeId kv = builder_.add(Op::kKvAppend, {k, v, state}, toy_attributes({shape_.head_dim}));
    const NodeId attended = builder_.add(
        Op::kAttention, {q, kv}, toy_attributes({shape_.head_dim, window, attribute_bits(0.25f), attribute_bits(0.0f)}));
    x = builder_.add(Op::kAdd, {x, linear(p + "o", attended, shape_.hidden, q_cols)});
    const NodeId h2 = norm(p + "norm2", x, shape_.hidden);
    const NodeId glu = builder_.add(Op::kGlu, {linear(p + "gate", h2, shape_.ffn, shape_.hidden), linear(p + "up", h2, shape_.ffn, shape_.hidden)},
                                    toy_attributes({0}));
    return builder_.add(Op::kAdd, {x, linear(p + "down", glu, shape_.hidden, shape_.ffn)});
  }

  NodeId matrix(const std::string& name, uint32_t outputs, uint32_t inputs) {
    return builder_.weight(name, shape_.matrices, outputs, inputs);
  }
  NodeId vector(const std::string& name, uint32_t cols) { return builder_.weight(name, DType::kF32, 1, cols); }

  // Norms and what was added to them go into products, rotations into the cache's writer and reader; the output projection is
  // split after its first head.
  NodeId add_fused_layer(uint32_t layer, NodeId x, NodeId angles) {
    const std::string p = "layer" + std::to_string(layer) + ".";
    const uint32_t d = shape_.head_dim, q_cols = shape_.heads * d, kv_cols = shape_.kv_heads * d;
    const uint32_t window = layer % 2 == 1 ? shape_.window : 0;
    const uint32_t eps = attribute_bits(1e-5f), offset = attribute_bits(0.25f), scale = attribute_bits(0.25f);
    const Attributes norm = toy_attributes({eps, offset});
    const NodeId gain = vector(p + "norm1", shape_.hidden);
    const NodeId q = builder_.add(
        Op::kNormLinearBias, {x, gain, matrix(p + "q", q_cols, shape_.hidden), vector(p + "q_bias", q_cols)}, norm);
    const NodeId k = builder_.add(Op::kNormLinear, {x, gain, matrix(p + "k", kv_cols, shape_.hidden)}, norm);
    const NodeId v = builder_.add(Op::kNormLinear, {x, gain, matrix(p + "v", kv_cols, shape_.hidden)}, norm);
    const NodeId state = builder_.kv_state({layer, shape_.kv_heads, d, window});
    const NodeId kv = builder_.add(Op::kRopeKvAppend, {k, v, angles, state}, toy_attributes({d}));
    const NodeId attended = builder_.add(Op::kNormRopeAttention, {q, vector(p + "q_norm", d), angles, kv},
                                         toy_attributes({d, window, scale, attribute_bits(0.0f), eps}));
    const NodeId o = matrix(p + "o", shape_.hidden, q_cols);
    const NodeId first = builder_.add(Op::kLinearAdd, {attended, o, x}, toy_attributes({0, d}));
    x = builder_.add(Op::kLinearAdd, {attended, o, first}, toy_attributes({d, q_cols}));
    const NodeId glu = builder_.add(Op::kNormGluLinear,
                                    {x, vector(p + "norm2", shape_.hidden), matrix(p + "gate", shape_.ffn, shape_.hidden),
                                     matrix(p + "up", shape_.ffn, shape_.hidden)},
                                    toy_attributes({eps, offset, 1}));
    const NodeId down = matrix(p + "down", shape_.hidden, shape_.ffn);
    const NodeId part = builder_.add(Op::kLinearPart, {glu, down}, toy_attributes({0, shape_.ffn / 4 * 2}));
    const NodeId sum = builder_.add(Op::kLinearAdd, {glu, down, part}, toy_attributes({shape_.ffn / 4 * 2, shape_.ffn}));
    return builder_.add(Op::kNormAdd, {sum, vector(p + "norm3", shape_.hidden), x}, norm);
  }

  // With S rows from the queries on.
  NodeId add_last_fused_layer(uint32_t layer, NodeId x, NodeId angles, NodeId sample_rows) {
    const std::string p = "layer" + std::to_string(layer) + ".";
    const uint32_t d = shape_.head_dim, q_cols = shape_.heads * d, kv_cols = shape_.kv_heads * d;
    const uint32_t window = layer % 2 == 1 ? shape_.window : 0;
    const uint32_t eps = attribute_bits(1e-5f), offset = attribute_bits(0.0f), scale = attribute_bits(0.25f);
    const NodeId h = norm(p + "norm1", x, shape_.hidden);
    const NodeId k = linear(p + "k", h, kv_cols, shape_.hidden);
    const NodeId v = builder_.add(Op::kLinearBias, {h, matrix(p + "v", kv_cols, shape_.hidden), vector(p + "v_bias", kv_cols)});
    const NodeId state = builder_.kv_state({layer, shape_.kv_heads, d, window});
    const NodeId kv = builder_.add(Op::kNormRopeKvAppend, {k, vector(p + "k_norm", d), v, angles, state},
                                   toy_attributes({d, eps, offset}));
    x = builder_.add(Op::kGatherRows, {x, sample_rows});
    const NodeId sampled_angles = builder_.add(Op::kGatherRows, {angles, sample_rows});
    const NodeId q = linear(p + "q", builder_.add(Op::kGatherRows, {h, sample_rows}), q_cols, shape_.hidden);
    const NodeId first = builder_.add(Op::kRopeAttention, {q, sampled_angles, kv},
                                      toy_attributes({d, window, scale, attribute_bits(0.0f)}));
    const NodeId turned = builder_.add(Op::kNormRope, {q, vector(p + "q_norm", d), sampled_angles},
                                       toy_attributes({d, eps, offset}));
    const NodeId parts =
        builder_.add(Op::kAttentionPart, {turned, kv}, toy_attributes({d, window, scale, attribute_bits(0.0f), 3}));
    const NodeId second =
        builder_.add(Op::kAttentionMerge, {parts}, toy_attributes({d, 3, shape_.heads / shape_.kv_heads}));
    const NodeId attended = builder_.add(Op::kAdd, {first, second});
    x = builder_.add(Op::kLinearAdd, {attended, matrix(p + "o", shape_.hidden, q_cols), x}, toy_attributes({0, q_cols}));
    const NodeId h2 = norm(p + "norm2", x, shape_.hidden);
    const NodeId glu = builder_.add(
        Op::kGluLinear, {h2, matrix(p + "gate", shape_.ffn, shape_.hidden), matrix(p + "up", shape_.ffn, shape_.hidden)},
        toy_attributes({2}));
    return builder_.add(Op::kAdd, {x, linear(p + "down", glu, shape_.hidden, shape_.ffn)});
  }

  ToyShape shape_;
  GraphBuilder builder_;
};

inline OpGraph toy_graph(const ToyShape& shape = {}) { return ToyModel(shape).build().value(); }

}  // namespace plow
