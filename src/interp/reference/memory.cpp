#include "interp/reference/memory.h"

#include "abi/layout.h"
#include "base/float16.h"

#include <algorithm>
#include <cstring>

namespace plow::reference {
namespace {

// All bits set is a quiet NaN in f32, bf16 and f16.
constexpr std::byte kPoison{0xff};

template <class T>
T read_as(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// Calls f with the function that reads an element of the dtype as a double: rows are read in one loop a
// dtype.
template <class F>
void with_reader(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kF32:
      return f([](const std::byte* from) -> double { return read_as<float>(from); });
    case DType::kBf16:
      return f([](const std::byte* from) -> double { return bf16_to_float(read_as<uint16_t>(from)); });
    case DType::kF16:
      return f([](const std::byte* from) -> double { return f16_to_float(read_as<uint16_t>(from)); });
    case DType::kF64:
      return f([](const std::byte* from) -> double { return read_as<double>(from); });
    case DType::kU32:
      return f([](const std::byte* from) -> double { return read_as<uint32_t>(from); });
    case DType::kQ8_0:
    case DType::kQ4_0:
      break;  // block_value
  }
}

template <class T>
void write_as(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(value));
}

void write_element(DType dtype, std::byte* to, double value) {
  const float rounded = static_cast<float>(value);
  switch (dtype) {
    case DType::kF32:
      return write_as(to, rounded);
    case DType::kBf16:
      return write_as(to, float_to_bf16(rounded));
    case DType::kF16:
      return write_as(to, float_to_f16(rounded));
    case DType::kF64:
      return write_as(to, value);
    case DType::kU32:
      return write_as(to, static_cast<uint32_t>(value));
    case DType::kQ8_0:
    case DType::kQ4_0:
      break;  // nothing computes them
  }
}

// Bytes from the tensor's start to an element (abi/tensor.h, Layout).
uint64_t element_offset(const TensorEntry& tensor, uint64_t row, uint64_t column) {
  const uint64_t element = dtype_bytes(tensor.dtype);
  if (tensor.layout == Layout::kRowMajor) return row * tensor.row_stride + column * element;
  if (tensor.layout == Layout::kAtoms8x128) {
    return atom_shape(tensor.rows, tensor.cols, dtype_bytes(tensor.dtype))
        .offset(static_cast<uint32_t>(row), column * element);
  }
  const uint64_t pairs = (uint64_t{tensor.cols} + 1) / 2;
  return ((row / 16 * pairs + column / 2) * 32 + row % 16 * 2 + column % 2) * element;
}

// An element of a matrix of blocks.
double block_value(const TensorEntry& tensor, const std::byte* base, uint32_t row, uint32_t column) {
  const std::byte* block = base + row_block_offset(tensor.dtype, tensor.cols, row, column);
  const auto byte = read_as<uint8_t>(block + in_block_offset(tensor.dtype, row, column));
  return double{f16_to_float(read_as<uint16_t>(block + row % kBlockRows * 2))} *
         block_integer(tensor.dtype, byte, column);
}

}  // namespace

Memory::Memory(const BundleFile& bundle, std::span<const std::byte> tape,
               std::span<const uint32_t> pool_blocks)
    : groups_(bundle.kv_groups()), kv_dtype_(bundle.header().kv_dtype), tape_(tape) {
  uint64_t arena_bytes = 0;
  for (const ProgramView& program : bundle.programs())
    arena_bytes = std::max(arena_bytes, program.entry->arena_bytes);
  arena_.resize(arena_bytes);
  for (size_t g = 0; g < groups_.size(); ++g) kv_.emplace_back(pool_blocks[g] * groups_[g].block_bytes);
  poison_arena();
  poison_kv();
}

void Memory::poison_arena() { std::fill(arena_.begin(), arena_.end(), kPoison); }

void Memory::poison_kv() {
  for (auto& pool : kv_) std::fill(pool.begin(), pool.end(), kPoison);
}

void Memory::load(const TensorEntry& tensor, uint32_t row, uint32_t begin, uint32_t end, double* out) const {
  const std::byte* base = (tensor.space == Space::kTape ? tape_.data() : arena_.data()) + tensor.offset;
  if (is_of_blocks(tensor.dtype)) {
    for (uint32_t c = begin; c < end; ++c) out[c - begin] = block_value(tensor, base, row, c);
  }
  with_reader(tensor.dtype, [&](const auto& read) {
    for (uint32_t c = begin; c < end; ++c) out[c - begin] = read(base + element_offset(tensor, row, c));
  });
}

void Memory::store(const TensorEntry& tensor, uint32_t row, uint32_t begin, uint32_t end,
                   const double* values) {
  std::byte* base = arena_.data() + tensor.offset;
  for (uint32_t c = begin; c < end; ++c) {
    write_element(tensor.dtype, base + element_offset(tensor, row, c), values[c - begin]);
  }
}

// A block holds, for each KV head, K as [head_dim][block_tokens] or [block_tokens][head_dim] and then V as
// [block_tokens][head_dim].
KvPlace Memory::kv_place(const TensorEntry& tensor, uint32_t block, uint32_t position, uint32_t head,
                         uint32_t head_dim, uint32_t column) const {
  const KvGroup& group = groups_[tensor.kv_group];
  const uint64_t tokens = group.block_tokens;
  const uint64_t in_block = position % tokens;
  const uint64_t first =
      (block * group.block_bytes + tensor.offset) / dtype_bytes(kv_dtype_) + head * (2 * head_dim * tokens);
  const uint64_t key =
      tensor.layout == Layout::kKvRows ? in_block * head_dim + column : column * tokens + in_block;
  return {first + key, first + head_dim * tokens + in_block * head_dim + column};
}

double Memory::load_kv(uint32_t group, uint64_t element) const {
  double value = 0;
  const std::byte* from = kv_[group].data() + element * dtype_bytes(kv_dtype_);
  with_reader(kv_dtype_, [&](const auto& read) { value = read(from); });
  return value;
}

void Memory::store_kv(uint32_t group, uint64_t element, double value) {
  write_element(kv_dtype_, kv_[group].data() + element * dtype_bytes(kv_dtype_), value);
}

}  // namespace plow::reference
