// That a fused operator's reference is the composition that README.md states: here it is written out once
// more, over the references of the primitive operators.
#include "abi/attention_parts.h"
#include "ops/test_instance.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace plow {
namespace {

// The reference of a primitive operator in the step of a fused instance. Types do not matter to it, but the
// number of columns and which rows they are.
struct By {
  const TestInstance& whole;

  Matrix operator()(Op op, std::vector<Matrix> values, const Attributes& attributes = {}) const {
    TestInstance instance = whole;
    instance.op = op;
    instance.attributes = attributes;
    instance.values = std::move(values);
    instance.inputs.clear();
    for (size_t i = 0; i < instance.values.size(); ++i) {
      const bool from_tape = whole.values.size() > 1 && is_stored(op, i, instance.values.size());
      const Rows rows = from_tape ? Rows::kFixed : whole.inputs[0].shape.row_kind;
      const uint32_t fixed_rows = op == Op::kLinear && i == 1 ? instance.values[i].rows : 1;
      instance.inputs.push_back({DType::kF32, {rows, from_tape ? fixed_rows : 1, instance.values[i].cols}});
    }
    return instance.run();
  }
  // Of the primitive operators that are composed: gains, biases, matrices and caches come last.
  static bool is_stored(Op op, size_t input, size_t n_inputs) {
    const bool has = op == Op::kRmsNorm || op == Op::kLinear || op == Op::kBiasAdd || op == Op::kKvAppend ||
                     op == Op::kAttention;
    return has && input + 1 == n_inputs;
  }
};

// Columns [begin, end).
Matrix columns(const Matrix& m, uint32_t begin, uint32_t end) {
  Matrix out(m.rows, end - begin);
  for (uint32_t r = 0; r < m.rows; ++r) std::copy_n(m.row(r) + begin, end - begin, out.row(r));
  return out;
}

// Written out position by position; TestInstance::run says what the cache holds.
Matrix parts_of_attention(const TestInstance& t) {
  const uint32_t d = t.attributes[0], window = t.attributes[1], parts = t.attributes[4];
  const Matrix &q = t.values[0], &content = t.values[1];
  const uint32_t kv_heads = content.cols / d, queries = q.cols / content.cols;
  const bool sampled = t.inputs[0].shape.row_kind == Rows::kSamples;
  Matrix out(q.rows, kv_heads * parts * queries * (d + 2));
  for (uint32_t r = 0; r < q.rows; ++r) {
    const uint32_t last = t.first_position + (sampled ? r % t.tokens : r);
    const uint32_t first = window > 0 && last >= window ? last - window + 1 : 0;
    const uint32_t first_unit = first / 64, units = last / 64 - first_unit + 1;
    for (uint32_t head = 0; head < kv_heads * queries; ++head) {
      for (uint32_t part = 0; part < parts; ++part) {
        std::vector<std::pair<double, uint32_t>> scores;  // with their positions
        for (uint32_t p = first; p <= last; ++p) {
          const uint32_t unit = p / 64 - first_unit;
          if (unit < units * part / parts || unit >= units * (part + 1) / parts) continue;
          double score = 0;
          for (uint32_t c = 0; c < d; ++c)
            score += q.row(r)[head * d + c] * content.row(p)[head / queries * d + c];
          score *= double{attribute_f32(t.attributes, 2)};
          const double cap = attribute_f32(t.attributes, 3);
          scores.emplace_back(cap > 0 ? cap * std::tanh(score / cap) : score, p);
        }
        double* tile = out.row(r) + (size_t{head} / queries * parts + part) * queries * (d + 2);
        double& maximum = tile[queries * d + head % queries];
        maximum = -INFINITY;
        for (const auto& [score, p] : scores) maximum = std::max(maximum, score);
        for (const auto& [score, p] : scores) {
          const double weight = std::exp(score - maximum);
          tile[queries * d + queries + head % queries] += weight;
          for (uint32_t c = 0; c < d; ++c)
            tile[head % queries * d + c] += weight * (1 + 0.5 * content.row(p)[head / queries * d + c]);
        }
      }
    }
  }
  return out;
}

// Without the largest maximum: test values are small.
Matrix merged_attention(const TestInstance& t) {
  const uint32_t d = t.attributes[0], parts = t.attributes[1], queries = t.attributes[2],
                 tile = queries * (d + 2);
  const Matrix& x = t.values[0];
  Matrix out(x.rows, x.cols / (parts * (d + 2)) * d);
  for (uint32_t r = 0; r < x.rows; ++r) {
    for (uint32_t c = 0; c < out.cols; ++c) {
      const uint32_t head = c / d;
      double sum = 0;
      for (uint32_t part = 0; part < parts; ++part) {
        const double* from = x.row(r) + (head / queries * parts + part) * tile;
        const double weight = std::exp(from[queries * d + head % queries]);
        out.row(r)[c] += weight * from[head % queries * d + c % d];
        sum += weight * from[queries * d + queries + head % queries];
      }
      out.row(r)[c] /= sum;
    }
  }
  return out;
}

Matrix composed(const TestInstance& t) {
  const By by{t};
  const std::vector<Matrix>& v = t.values;
  const Attributes& a = t.attributes;
  const auto part = [&] { return by(Op::kLinear, {columns(v[0], a[0], a[1]), columns(v[1], a[0], a[1])}); };
  // eps and offset at `eps`.
  const auto norm = [&](uint32_t eps, uint32_t group) {
    return by(Op::kRmsNorm, {v[0], v[1]}, {a[eps], a[eps + 1], group});
  };
  const auto head_norm = [&](uint32_t eps, uint32_t offset) {
    return by(Op::kRmsNorm, {v[0], v[1]}, {a[eps], offset, a[0]});
  };
  const auto rope = [&](const Matrix& x, size_t table) { return by(Op::kRope, {x, v[table]}, {a[0]}); };
  const Attributes attention{a[0], a[1], a[2], a[3]};
  const auto glu = [&](const Matrix& x, size_t gate, uint32_t activation) {
    return by(Op::kGlu, {by(Op::kLinear, {x, v[gate]}), by(Op::kLinear, {x, v[gate + 1]})}, {activation});
  };
  switch (t.op) {
    case Op::kLinearAdd:
      return by(Op::kAdd, {v[2], part()});
    case Op::kLinearPart:
      return part();
    case Op::kNormLinear:
      return by(Op::kLinear, {norm(0, v[0].cols), v[2]});
    case Op::kGluLinear:
      return glu(v[0], 1, a[0]);
    case Op::kNormGluLinear:
      return glu(norm(0, v[0].cols), 2, a[2]);
    case Op::kLinearBias:
      return by(Op::kBiasAdd, {by(Op::kLinear, {v[0], v[1]}), v[2]});
    case Op::kNormLinearBias:
      return by(Op::kBiasAdd, {by(Op::kLinear, {norm(0, v[0].cols), v[2]}), v[3]});
    case Op::kNormRope:
      return rope(head_norm(1, a[2]), 2);
    case Op::kRopeKvAppend:
      return by(Op::kKvAppend, {rope(v[0], 2), v[1], v[3]}, {a[0]});
    case Op::kNormRopeKvAppend:
      return by(Op::kKvAppend, {rope(head_norm(1, a[2]), 3), v[2], v[4]}, {a[0]});
    case Op::kRopeAttention:
      return by(Op::kAttention, {rope(v[0], 1), v[2]}, attention);
    case Op::kNormRopeAttention:
      return by(Op::kAttention, {rope(head_norm(4, attribute_bits(0.0f)), 2), v[3]}, attention);
    case Op::kNormAdd:
      return by(Op::kAdd, {v[2], norm(0, v[0].cols)});
    case Op::kAttentionPart:
      return parts_of_attention(t);
    case Op::kAttentionMerge:
      return merged_attention(t);
    default:
      ADD_FAILURE() << op_name(t.op) << " has no composition here";
      return {};
  }
}

TEST(FusedOperators, AreTheCompositionsThatTheReadmeStates) {
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    for (const TestInstance& instance : random_instances(random)) {
      if (!is_fused(instance.op)) continue;
      const Matrix expected = composed(instance), found = instance.run();
      ASSERT_EQ(found.values.size(), expected.values.size()) << op_name(instance.op);
      // The same references in the same order, but for sums over columns that begin elsewhere in memory.
      for (size_t i = 0; i < expected.values.size(); ++i)
        ASSERT_NEAR(found.values[i], expected.values[i], 1e-12) << op_name(instance.op);
    }
  }
}

// Prompts and steps of decode, of many lengths and windows, in any number of parts.
TEST(FusedOperators, TheMergedPartsOfAnAttentionAreTheAttention) {
  std::mt19937 random(13);
  for (int round = 0; round < 60; ++round) {
    for (TestInstance part : random_instances(random)) {
      if (part.op != Op::kAttentionPart) continue;
      const uint32_t d = part.attributes[0],
                     parts = 1 + static_cast<uint32_t>(random() % kMostAttentionParts);
      part.attributes[1] = random() % 2 == 0 ? 0 : 1 + static_cast<uint32_t>(random() % 400);
      part.attributes[4] = parts;
      part.first_position = static_cast<uint32_t>(random() % 600);
      part.values[1] = Matrix(part.first_position + part.tokens, part.values[1].cols);
      for (double& value : part.values[1].values) value = static_cast<double>(random() % 2001) / 1000 - 1;
      TestInstance whole = part, merge = part;
      whole.op = Op::kAttention;
      whole.attributes[4] = 0;
      merge.op = Op::kAttentionMerge;
      merge.attributes = {d, parts, part.values[0].cols / part.values[1].cols};
      merge.inputs = {part.output()};
      merge.values = {part.run()};
      const Matrix expected = whole.run(), found = merge.run();
      ASSERT_EQ(merge.output(), whole.output());
      ASSERT_EQ(found.cols, expected.cols);
      for (size_t i = 0; i < expected.values.size(); ++i)
        ASSERT_NEAR(found.values[i], expected.values[i], 1e-12) << parts << " parts";
    }
  }
}

// The step of an instance samples rows 0, 1, ... of its sequence, over and over (TestInstance::run).
TEST(FusedOperators, SampledQueriesAttendFromTheRowsThatAreSampled) {
  std::mt19937 random(12);
  for (int round = 0; round < 20; ++round) {
    for (const TestInstance& all : random_instances(random)) {
      if (all.op != Op::kAttention || all.inputs[0].shape.row_kind != Rows::kTokens) continue;
      TestInstance sampled = all;
      sampled.inputs[0].shape.row_kind = Rows::kSamples;
      sampled.samples = 2 * all.tokens - 1;
      sampled.values[0] = Matrix(sampled.samples, all.values[0].cols);
      for (uint32_t s = 0; s < sampled.samples; ++s)
        std::copy_n(all.values[0].row(s % all.tokens), all.values[0].cols, sampled.values[0].row(s));
      const Matrix of_all = all.run(), of_sampled = sampled.run();
      ASSERT_EQ(of_sampled.rows, sampled.samples);
      for (uint32_t s = 0; s < sampled.samples; ++s) {
        for (uint32_t c = 0; c < of_all.cols; ++c)
          ASSERT_EQ(of_sampled.row(s)[c], of_all.row(s % all.tokens)[c]) << "sample " << s;
      }
    }
  }
}

}  // namespace
}  // namespace plow
