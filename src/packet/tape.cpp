#include "packet/tape.h"

#include <cstring>

#include "abi/layout.h"
#include "base/check.h"
#include "base/float16.h"

namespace plow {

namespace {

uint64_t align_up(uint64_t value) { return (value + kTapeAlignment - 1) / kTapeAlignment * kTapeAlignment; }

inline uint16_t to_bf16(float value) { return float_to_bf16(value); }
inline uint16_t to_f16(float value) { return float_to_f16(value); }
inline float to_f32(float value) { return value; }
inline double to_f64(float value) { return value; }

// Calls place(row of the piece, column) for where each value lies, in elements from the tensor's start.
template <class T, T (*kConvert)(float), class Place>
void pack_each(uint32_t n_rows, uint32_t cols, const float* values, std::byte* out, const Place& place) {
  for (uint32_t r = 0; r < n_rows; ++r) {
    for (uint32_t c = 0; c < cols; ++c) {
      const T value = kConvert(values[size_t{r} * cols + c]);
      std::memcpy(out + place(r, c), &value, sizeof(T));
    }
  }
}

template <class T, T (*kConvert)(float)>
void pack(const TapeTensor& tensor, uint32_t first_row, uint32_t n_rows, const float* values, std::byte* out) {
  const uint32_t cols = tensor.cols;
  switch (tensor.layout) {
    case Layout::kRowMajor:
      return pack_each<T, kConvert>(n_rows, cols, values, out + size_t{first_row} * cols * sizeof(T),
                                    [cols](uint32_t r, uint32_t c) { return (size_t{r} * cols + c) * sizeof(T); });
    case Layout::kRows16Pairs: {
      const size_t group_elements = (size_t{cols} + kColumnPair - 1) / kColumnPair * kRowGroup * kColumnPair;
      return pack_each<T, kConvert>(n_rows, cols, values, out, [=](uint32_t r, uint32_t c) {
        const uint32_t row = first_row + r;
        return (row / kRowGroup * group_elements + size_t{c} / kColumnPair * kRowGroup * kColumnPair + row % kRowGroup * kColumnPair +
                c % kColumnPair) *
               sizeof(T);
      });
    }
    case Layout::kAtoms8x128: {
      const AtomShape shape = atom_shape(tensor.rows, cols, sizeof(T));
      return pack_each<T, kConvert>(n_rows, cols, values, out,
                                    [=](uint32_t r, uint32_t c) { return shape.offset(first_row + r, uint64_t{c} * sizeof(T)); });
    }
    case Layout::kKvBlocks:
    case Layout::kKvRows:
    case Layout::kRows16Blocks: break;
  }
  PLOW_CHECK(false, "the tape has no floats in a cache's layout, nor in one of blocks");
}

// One of GGUF's blocks of row `row`, columns `col` on.
void pack_block(DType dtype, uint32_t row, uint32_t col, const std::byte* from, std::byte* to) {
  std::memcpy(to + row % kBlockRows * 2, from, 2);
  for (uint32_t i = 0; i < kBlockColumns; ++i) {
    std::byte& place = to[in_block_offset(dtype, row, col + i)];
    if (dtype == DType::kQ8_0) {
      place = from[2 + i];
      continue;
    }
    const std::byte both = from[2 + i % (kBlockColumns / 2)];
    const std::byte half = i < kBlockColumns / 2 ? both & std::byte{15} : both >> 4;
    place |= i / 2 % 2 == 0 ? half : half << 4;
  }
}

}  // namespace

uint64_t layout_bytes(Layout layout, DType dtype, uint32_t rows, uint32_t cols) {
  if (layout == Layout::kRowMajor) return uint64_t{rows} * cols * dtype_bytes(dtype);
  if (layout == Layout::kAtoms8x128) return atom_shape(rows, cols, dtype_bytes(dtype)).bytes();
  const uint64_t groups = (uint64_t{rows} + kRowGroup - 1) / kRowGroup;
  if (layout == Layout::kRows16Blocks) return groups * ((uint64_t{cols} + kBlockColumns - 1) / kBlockColumns) * row_block_bytes(dtype);
  const uint64_t pairs = (uint64_t{cols} + kColumnPair - 1) / kColumnPair;
  return groups * pairs * kRowGroup * kColumnPair * dtype_bytes(dtype);
}

bool has_block_bodies(Isa isa) { return isa == Isa::kX86_64; }

Layout layout_of_matrices(Isa isa, DType dtype) {
  PLOW_CHECK(!is_of_blocks(dtype) || has_block_bodies(isa), "{} has no bodies for {}", isa_name(isa), dtype_name(dtype));
  switch (isa) {
    case Isa::kX86_64: return is_of_blocks(dtype) ? Layout::kRows16Blocks : Layout::kRows16Pairs;
    case Isa::kSm90a:
    case Isa::kSm120:
    case Isa::kGfx942:
    case Isa::kGfx950: return Layout::kAtoms8x128;
  }
  PLOW_CHECK(false, "no layout of matrices for ISA {}", static_cast<uint32_t>(isa));
  __builtin_unreachable();
}

bool packs_by_rows(Layout layout) { return layout != Layout::kAtoms8x128; }

TapePlan plan_tape(const OpGraph& graph, Isa isa) {
  TapePlan plan;
  plan.of_node.assign(graph.nodes.size(), kNoSource);
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& consumer = graph.nodes[n];
    for (uint32_t i = 0; i < consumer.n_inputs; ++i) {
      const NodeId input = graph.inputs_of(NodeId(n))[i];
      const Node& leaf = graph.node(input);
      if (leaf.op != Op::kWeight && leaf.op != Op::kConstant) continue;
      const Layout layout = (matrix_inputs(consumer.op) >> i & 1) != 0 ? layout_of_matrices(isa, leaf.dtype) : Layout::kRowMajor;
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

void pack_rows(const TapeTensor& tensor, uint32_t first_row, uint32_t n_rows, const float* values, std::span<std::byte> out) {
  PLOW_CHECK(out.size() == layout_bytes(tensor.layout, tensor.dtype, tensor.rows, tensor.cols), "{} bytes for {} rows", out.size(), tensor.rows);
  switch (tensor.dtype) {
    case DType::kBf16: return pack<uint16_t, to_bf16>(tensor, first_row, n_rows, values, out.data());
    case DType::kF16: return pack<uint16_t, to_f16>(tensor, first_row, n_rows, values, out.data());
    case DType::kF32: return pack<float, to_f32>(tensor, first_row, n_rows, values, out.data());
    case DType::kF64: return pack<double, to_f64>(tensor, first_row, n_rows, values, out.data());
    case DType::kU32:
    case DType::kQ8_0:
    case DType::kQ4_0: break;
  }
  PLOW_CHECK(false, "floats of dtype {}", dtype_name(tensor.dtype));
}

void pack_blocks(const TapeTensor& tensor, uint32_t first_row, uint32_t n_rows, std::span<const std::byte> blocks, std::span<std::byte> out) {
  const uint32_t row_blocks = tensor.cols / kBlockColumns, bytes = dtype_bytes(tensor.dtype);
  PLOW_CHECK(is_of_blocks(tensor.dtype) && tensor.layout == Layout::kRows16Blocks, "{} is no dtype of blocks", dtype_name(tensor.dtype));
  PLOW_CHECK(out.size() == layout_bytes(tensor.layout, tensor.dtype, tensor.rows, tensor.cols) && blocks.size() == size_t{n_rows} * row_blocks * bytes,
             "{} bytes of blocks and {} of the tape for {} rows of {}", blocks.size(), out.size(), n_rows, tensor.rows);
  const std::byte* from = blocks.data();
  for (uint32_t r = 0; r < n_rows; ++r) {
    for (uint32_t c = 0; c < tensor.cols; c += kBlockColumns, from += bytes) {
      const uint32_t row = first_row + r;
      pack_block(tensor.dtype, row, c, from, out.data() + row_block_offset(tensor.dtype, tensor.cols, row, c));
    }
  }
}

}  // namespace plow
