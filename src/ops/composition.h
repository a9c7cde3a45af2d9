// For the fused operators' def.cpp: an operator that is defined as others, one after the other. Its types,
// its work and its reference are theirs.
#pragma once

#include "ops/def.h"

#include <array>
#include <utility>

namespace plow {

// One of them. It takes values by number: the inputs of the whole come first, then the stages' values.
struct Stage {
  const OpDef* def;
  std::array<uint8_t, 4> inputs;  // def->n_inputs of them
  Attributes attributes{};
};

// stages() may look at nothing of the inputs but their columns, which need not fit.
template <Op op,
          std::vector<Stage> (*stages)(std::span<const ValueType> inputs, const Attributes& attributes)>
struct Composition {
  static constexpr OpDef def(uint32_t n_inputs, std::span<const AttributeDef> names = {}) {
    return {op, n_inputs, names, infer, work, reference};
  }

  static Result<ValueType> infer(std::span<const ValueType> in, const Attributes& attributes) {
    std::vector<ValueType> types(in.begin(), in.end());
    for (const Stage& stage : stages(in, attributes)) {
      const Result<ValueType> type = stage.def->infer(taken(stage, types), stage.attributes);
      if (!type.ok()) return misfit(op, type.error().message);
      types.push_back(*type);
    }
    return types.back();
  }

  // What the stages hand to each other is not stored, and an activation that several read is read once.
  static Work work(std::span<const ValueType> in, const ValueType&, const Attributes& attributes,
                   double tokens, double samples) {
    std::vector<ValueType> types(in.begin(), in.end());
    std::vector<bool> was_read(in.size(), false);
    Work sum;
    const auto not_moved = [&](const ValueType& type) {
      if (type.shape.row_kind != Rows::kFixed) sum.activation_bytes -= value_bytes(type, tokens, samples);
    };
    const std::vector<Stage> all = stages(in, attributes);
    for (const Stage& stage : all) {
      const std::vector<ValueType> inputs = taken(stage, types);
      types.push_back(*stage.def->infer(inputs, stage.attributes));
      const Work work = stage.def->work(inputs, types.back(), stage.attributes, tokens, samples);
      sum.flops += work.flops;
      sum.weight_bytes += work.weight_bytes;
      sum.activation_bytes += work.activation_bytes;
      sum.kv_bytes_per_position += work.kv_bytes_per_position;
      for (uint32_t i = 0; i < stage.def->n_inputs; ++i) {
        if (stage.inputs[i] >= in.size() || was_read[stage.inputs[i]]) not_moved(inputs[i]);
        if (stage.inputs[i] < in.size()) was_read[stage.inputs[i]] = true;
      }
      if (&stage != &all.back()) not_moved(types.back());
    }
    return sum;
  }

  static Matrix reference(EvalContext& context, NodeId node, std::span<const Matrix* const> in,
                          const Attributes& attributes) {
    std::vector<ValueType> types;  // of which stages() looks at the columns
    for (const Matrix* value : in) types.push_back({DType::kF32, {Rows::kFixed, value->rows, value->cols}});
    const std::vector<Stage> all = stages(types, attributes);
    std::vector<Matrix> made;
    made.reserve(all.size());  // their addresses are kept
    std::vector<const Matrix*> values(in.begin(), in.end());
    for (const Stage& stage : all) {
      made.push_back(stage.def->reference(context, node, taken(stage, values), stage.attributes));
      values.push_back(&made.back());
    }
    return std::move(made.back());
  }

 private:
  template <class T>
  static std::vector<T> taken(const Stage& stage, const std::vector<T>& values) {
    std::vector<T> out;
    for (uint32_t i = 0; i < stage.def->n_inputs; ++i) out.push_back(values[stage.inputs[i]]);
    return out;
  }
};

// One whose inputs `gate` and `gate` + 1 are matrices that one body multiplies by: they must be of one dtype.
template <Op op,
          std::vector<Stage> (*stages)(std::span<const ValueType> inputs, const Attributes& attributes),
          uint32_t gate>
struct GatedComposition {
  using Whole = Composition<op, stages>;

  static constexpr OpDef def(uint32_t n_inputs, std::span<const AttributeDef> names) {
    OpDef def = Whole::def(n_inputs, names);
    def.infer = infer;
    return def;
  }

  static Result<ValueType> infer(std::span<const ValueType> in, const Attributes& attributes) {
    const ValueType &a = in[gate], &b = in[gate + 1];
    if (a.dtype == b.dtype) return Whole::infer(in, attributes);
    return misfit(op,
                  fmt::format("both matrices must have one dtype, found {} and {}", to_text(a), to_text(b)));
  }
};

}  // namespace plow
