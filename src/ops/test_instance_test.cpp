#include "ops/test_instance.h"

#include "abi/attention_parts.h"

#include <gtest/gtest.h>

namespace plow {
namespace {

constexpr ValueType activation(Rows rows, uint32_t cols) { return {DType::kF32, {rows, 1, cols}}; }
constexpr ValueType stored(uint32_t rows, uint32_t cols) {
  return {DType::kBf16, {Rows::kFixed, rows, cols}};
}
constexpr ValueType column(Rows rows) { return {DType::kU32, {rows, 1, 1}}; }

uint32_t rows_of(const TestInstance& instance, const Shape& shape) {
  if (shape.row_kind == Rows::kTokens) return instance.tokens;
  return shape.row_kind == Rows::kSamples ? instance.samples : shape.rows;
}

// Keys and values of the cache from one matrix, so that a test changes both at once.
EvalKv cache_of(const Matrix& content) {
  EvalKv kv;
  kv.keys = {content.values};
  kv.values = {content.values};
  for (size_t i = 0; i < content.values.size(); ++i) kv.values[0][i] = 1.0 + 0.5 * content.values[i];
  return kv;
}

// A kv_state, what appends to it and what attends to that: what the references of the two look for in the
// graph.
OpGraph cache_graph(const ValueType& cache, const ValueType& attended) {
  OpGraph graph;
  graph.nodes.resize(3);
  graph.nodes[0].op = Op::kKvState;
  graph.nodes[0].shape = cache.shape;
  graph.inputs = {NodeId(0), NodeId(0), NodeId(0), NodeId(0), NodeId(1)};
  graph.nodes[1] = {.op = Op::kKvAppend,
                    .dtype = cache.dtype,
                    .shape = cache.shape,
                    .attributes = {},
                    .first_input = 0,
                    .n_inputs = 3};
  graph.nodes[2] = {.op = Op::kAttention,
                    .dtype = attended.dtype,
                    .shape = attended.shape,
                    .attributes = {},
                    .first_input = 3,
                    .n_inputs = 2};
  return graph;
}

}  // namespace

ValueType TestInstance::output() const {
  const Result<ValueType> type = op_def(op).infer(inputs, attributes);
  PLOW_CHECK(type.ok(), "{}", type.error().message);
  return *type;
}

Matrix TestInstance::run() const {
  const bool has_cache = takes_cache();
  const OpGraph graph = has_cache ? cache_graph(inputs.back(), output()) : OpGraph{};
  EvalStep step;
  SamplingParams greedy{};
  greedy.flags = kSampleGreedy;
  greedy.repetition_penalty = 1;
  step.sampling.assign(samples, greedy);
  for (uint32_t s = 0; s < samples; ++s) step.sample_rows.push_back(s % tokens);
  std::vector<EvalKv> kv;
  if (has_cache) kv.push_back(cache_of(values.back()));
  std::vector<std::vector<uint32_t>> history(1, std::vector<uint32_t>(first_position + tokens, 0));
  EvalContext context{&graph, &step, std::vector<uint32_t>(tokens, 0), {}, &kv, &history};
  for (uint32_t t = 0; t < tokens; ++t) context.positions.push_back(first_position + t);

  std::vector<const Matrix*> pointers;
  for (const Matrix& value : values) pointers.push_back(&value);
  Matrix out = op_def(op).reference(context, NodeId(attends(op) ? 2 : 1), pointers, attributes);
  if (!appends_kv(op)) return out;
  out = Matrix(tokens, inputs.back().shape.cols);
  for (size_t i = 0; i < out.values.size(); ++i) {
    const size_t at = size_t{first_position} * out.cols + i;
    out.values[i] = kv[0].keys[0][at] + 3.0 * kv[0].values[0][at];
  }
  return out;
}

bool TestInstance::takes_cache() const { return appends_kv(op) || attends(op); }

namespace {

uint32_t pick(std::mt19937& random, uint32_t least, uint32_t most) {
  return least + static_cast<uint32_t>(random() % (most - least + 1));
}

// Without values.
std::vector<TestInstance> fused_instances(std::mt19937& random) {
  const uint32_t n = pick(random, 2, 70), k = pick(random, 2, 40);
  const uint32_t head_dim = 2 * pick(random, 1, 9), kv_heads = pick(random, 1, 4);
  const uint32_t kv = kv_heads * head_dim, q = kv * pick(random, 1, 3), half = pick(random, 1, head_dim / 2);
  const uint32_t k_begin = pick(random, 0, (k - 1) / 2) * 2;
  const uint32_t k_end = random() % 2 == 0 ? k : k_begin + 2 * pick(random, 1, (k - k_begin + 1) / 2);
  const Attributes part{k_begin, std::min(k, k_end)};
  const uint32_t eps = attribute_bits(0.1f), offset = attribute_bits(1.0f), act = pick(random, 0, 2);
  const Attributes attention{head_dim, pick(random, 0, 1) * 3, attribute_bits(0.5f),
                             attribute_bits(static_cast<float>(pick(random, 0, 1)) * 20.0f)};
  Attributes norm_attention = attention;
  norm_attention[4] = eps;
  const uint32_t parts = pick(random, 2, 3);
  Attributes part_attention = attention;
  part_attention[1] = pick(random, 0, 1) * kAttentionUnit * parts;
  part_attention[4] = parts;
  const Rows rows = random() % 2 == 0 ? Rows::kTokens : Rows::kSamples;
  const ValueType x = activation(rows, k), out = activation(rows, n), w = stored(n, k);
  const ValueType query = activation(rows, q), angles = activation(rows, 2 * half);
  const ValueType key = activation(Rows::kTokens, kv), key_angles = activation(Rows::kTokens, 2 * half);
  return {
      {Op::kLinearAdd, {x, w, out}, part},
      {Op::kLinearPart, {x, w}, part},
      {Op::kNormLinear, {x, stored(1, k), w}, {eps, offset}},
      {Op::kGluLinear, {x, w, w}, {act}},
      {Op::kNormGluLinear, {x, stored(1, k), w, w}, {eps, offset, act}},
      {Op::kLinearBias, {x, w, stored(1, n)}},
      {Op::kNormLinearBias, {x, stored(1, k), w, stored(1, n)}, {eps, offset}},
      {Op::kNormRope, {query, stored(1, head_dim), angles}, {head_dim, eps, offset}},
      {Op::kRopeKvAppend, {key, key, key_angles, stored(1, kv)}, {head_dim}},
      {Op::kNormRopeKvAppend,
       {key, stored(1, head_dim), key, key_angles, stored(1, kv)},
       {head_dim, eps, offset}},
      {Op::kRopeAttention, {query, angles, stored(1, kv)}, attention},
      {Op::kNormRopeAttention, {query, stored(1, head_dim), angles, stored(1, kv)}, norm_attention},
      {Op::kNormAdd, {out, stored(1, n), out}, {eps, offset}},
      {Op::kAttentionPart, {query, stored(1, kv)}, part_attention},
      {Op::kAttentionMerge,
       {activation(rows, q * parts / head_dim * (head_dim + 2))},
       {head_dim, parts, q / kv}},
  };
}

}  // namespace

std::vector<TestInstance> random_instances(std::mt19937& random) {
  const auto pick = [&](uint32_t least, uint32_t most) { return plow::pick(random, least, most); };
  const uint32_t n = pick(2, 70), k = pick(1, 40), vocab = pick(2, 30);
  const uint32_t head_dim = 2 * pick(1, 9), kv_heads = pick(1, 4), heads = kv_heads * pick(1, 3);
  const uint32_t kv = kv_heads * head_dim, q = heads * head_dim, half = pick(1, head_dim / 2);
  const ValueType x = activation(Rows::kTokens, n);
  const ValueType logits = activation(Rows::kSamples, n);
  const uint32_t one = attribute_bits(1.0f);
  const Attributes attention{head_dim, pick(0, 1) * 3, attribute_bits(0.5f),
                             attribute_bits(static_cast<float>(pick(0, 1)) * 20.0f)};
  std::vector<TestInstance> all = {
      {Op::kEmbed, {stored(vocab, n), column(Rows::kTokens)}},
      {Op::kScale, {x}, {attribute_bits(-1.5f)}},
      {Op::kRmsNorm,
       {activation(Rows::kTokens, q), stored(1, head_dim)},
       {attribute_bits(0.1f), one, head_dim}},
      {Op::kLinear, {activation(Rows::kTokens, k), stored(n, k)}},
      {Op::kBiasAdd, {x, stored(1, n)}},
      {Op::kRopeTable,
       {{DType::kF64, {Rows::kFixed, 1, half}}, column(Rows::kTokens)},
       {attribute_bits(1.25f)}},
      {Op::kRope, {activation(Rows::kTokens, q), activation(Rows::kTokens, 2 * half)}, {head_dim}},
      {Op::kKvAppend,
       {activation(Rows::kTokens, kv), activation(Rows::kTokens, kv), stored(1, kv)},
       {head_dim}},
      {Op::kAttention, {activation(Rows::kTokens, q), stored(1, kv)}, attention},
      {Op::kAttention, {activation(Rows::kSamples, q), stored(1, kv)}, attention},
      {Op::kAdd, {x, x}},
      {Op::kGlu, {x, x}, {pick(0, 2)}},
      {Op::kGatherRows, {x, column(Rows::kSamples)}},
      {Op::kSoftCap, {logits}, {attribute_bits(2.0f)}},
      {Op::kSample, {logits}},
  };
  for (TestInstance& fused : fused_instances(random)) all.push_back(std::move(fused));
  std::uniform_real_distribution<double> real(-1, 1);
  for (TestInstance& instance : all) {
    instance.tokens = pick(2, 9);
    instance.samples = pick(2, 5);
    instance.first_position = pick(1, 6);  // with one position to attend to, queries do not matter
    // Every part has positions, or what it reads does not matter either.
    if (instance.op == Op::kAttentionPart)
      instance.first_position += kAttentionUnit * (instance.attributes[4] - 1);
    for (size_t i = 0; i < instance.inputs.size(); ++i) {
      const ValueType& type = instance.inputs[i];
      const bool is_cache = i + 1 == instance.inputs.size() && instance.takes_cache();
      Matrix value(is_cache ? instance.first_position + instance.tokens : rows_of(instance, type.shape),
                   type.shape.cols);
      const uint32_t limit = instance.op == Op::kEmbed        ? vocab
                             : instance.op == Op::kGatherRows ? instance.tokens
                                                              : 1000;
      for (double& element : value.values)
        element = type.dtype == DType::kU32 ? static_cast<uint32_t>(random() % limit) : real(random);
      // Its sums are divided by.
      if (instance.op == Op::kAttentionMerge) {
        for (double& element : value.values) element = 0.1 + std::abs(element);
      }
      instance.values.push_back(std::move(value));
      instance.exclusive.push_back(limit);
    }
  }
  return all;
}

}  // namespace plow
