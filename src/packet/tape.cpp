#include "packet/tape.h"

#include <cstring>

#include "base/check.h"
#include "base/float16.h"

namespace plow {

namespace {

uint64_t align_up(uint64_t value) { return (value + kTapeAlignment - 1) / kTapeAlignment * kTapeAlignment; }

inline uint16_t to_bf16(float value) { return float_to_bf16(value); }
inline uint16_t to_f16(float value) { return float_to_f16(value); }
inline float to_f32(float value) { return value; }
inline double to_f64(float value) { return value; }

template <class T, T (*kConvert)(float)>
void pack_row_major(size_t n, const float* values, std::byte* out) {
  for (size_t i = 0; i < n; ++i) {
    const T value = kConvert(values[i]);
    std::memcpy(out + i * sizeof(T), &value, sizeof(T));
  }
}

template <class T, T (*kConvert)(float)>
void pack_row_groups(uint32_t n_rows, uint32_t cols, const float* values, std::byte* out) {
  const size_t pairs = (size_t{cols} + kColumnPair - 1) / kColumnPair;
  const size_t group_elements = pairs * kRowGroup * kColumnPair;
  for (uint32_t r = 0; r < n_rows; ++r) {
    const float* row = values + size_t{r} * cols;
    std::byte* first = out + ((r / kRowGroup) * group_elements + r % kRowGroup * kColumnPair) * sizeof(T);
    for (uint32_t c = 0; c < cols; ++c) {
      const T value = kConvert(row[c]);
      std::memcpy(first + (size_t{c} / kColumnPair * kRowGroup * kColumnPair + c % kColumnPair) * sizeof(T), &value, sizeof(T));
    }
  }
}

template <class T, T (*kConvert)(float)>
void pack(const TapeTensor& tensor, uint32_t n_rows, const float* values, std::byte* out) {
  if (tensor.layout == Layout::kRowMajor) {
    pack_row_major<T, kConvert>(size_t{n_rows} * tensor.cols, values, out);
  } else {
    pack_row_groups<T, kConvert>(n_rows, tensor.cols, values, out);
  }
}

}  // namespace

uint64_t layout_bytes(Layout layout, DType dtype, uint32_t rows, uint32_t cols) {
  if (layout == Layout::kRowMajor) return uint64_t{rows} * cols * dtype_bytes(dtype);
  const uint64_t groups = (uint64_t{rows} + kRowGroup - 1) / kRowGroup;
  const uint64_t pairs = (uint64_t{cols} + kColumnPair - 1) / kColumnPair;
  return groups * pairs * kRowGroup * kColumnPair * dtype_bytes(dtype);
}

TapePlan plan_tape(const OpGraph& graph) {
  TapePlan plan;
  plan.of_node.assign(graph.nodes.size(), kNoSource);
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& consumer = graph.nodes[n];
    for (uint32_t i = 0; i < consumer.n_inputs; ++i) {
      const NodeId input = graph.inputs_of(NodeId(n))[i];
      const Node& leaf = graph.node(input);
      if (leaf.op != Op::kWeight && leaf.op != Op::kConstant) continue;
      const Layout layout = (matrix_inputs(consumer.op) >> i & 1) != 0 ? Layout::kRows16Pairs : Layout::kRowMajor;
      uint32_t& index = plan.of_node[input.value];
      if (index != kNoSource) {
        PLOW_CHECK(plan.tensors[index].layout == layout, "node %{} is read in two layouts", input.value);
        continue;
      }
      index = static_cast<uint32_t>(plan.tensors.size());
      const uint64_t bytes = layout_bytes(layout, leaf.dtype, leaf.shape.rows, leaf.shape.cols);
      plan.tensors.push_back({input, plan.bytes, bytes, leaf.shape.rows, leaf.shape.cols, leaf.dtype, layout});
      plan.bytes = align_up(plan.bytes + bytes);
    }
  }
  return plan;
}

void pack_rows(const TapeTensor& tensor, uint32_t n_rows, const float* values, std::span<std::byte> out) {
  PLOW_CHECK(out.size() == layout_bytes(tensor.layout, tensor.dtype, n_rows, tensor.cols), "{} bytes for {} rows", out.size(), n_rows);
  std::memset(out.data(), 0, out.size());  // padding
  switch (tensor.dtype) {
    case DType::kBf16: return pack<uint16_t, to_bf16>(tensor, n_rows, values, out.data());
    case DType::kF16: return pack<uint16_t, to_f16>(tensor, n_rows, values, out.data());
    case DType::kF32: return pack<float, to_f32>(tensor, n_rows, values, out.data());
    case DType::kF64: return pack<double, to_f64>(tensor, n_rows, values, out.data());
    case DType::kU32: break;
  }
  PLOW_CHECK(false, "weights of dtype {}", dtype_name(tensor.dtype));
}

}  // namespace plow
