#include "checkpoint/checkpoint.h"

#include "checkpoint/dequantize.h"

#include <algorithm>
#include <cstring>

namespace plow {

namespace {

// Where row (or value) `index` of the tensor lies among the stored ones: see
// CheckpointTensor::interleaved_heads.
int64_t stored_index(int64_t index, int64_t count, int64_t heads) {
  if (heads == 0) return index;
  const int64_t d = count / heads;
  const int64_t head = index / d;
  const int64_t within = index % d;
  return head * d + (within % (d / 2)) * 2 + within / (d / 2);
}

}  // namespace

int64_t CheckpointTensor::n_rows() const {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return rows;
}

int64_t CheckpointTensor::row_values() const { return shape.empty() ? 1 : shape.back(); }

void read_rows(const CheckpointTensor& tensor, int64_t first_row, int64_t n_rows, float* out) {
  const int64_t rows = tensor.n_rows();
  const int64_t values = tensor.row_values();
  PLOW_CHECK(first_row >= 0 && n_rows >= 0 && first_row <= rows - n_rows, "rows {}+{} of {} in {}", first_row,
             n_rows, rows, tensor.name);
  const auto& info = dtype_info(tensor.dtype);
  const auto row_blocks = static_cast<size_t>(values) / info.block_values;
  const auto row_start = [&](int64_t row) {
    return tensor.bytes.data() + static_cast<size_t>(row) * row_blocks * info.block_bytes;
  };
  const int64_t heads = tensor.interleaved_heads;
  const bool permuted_rows = heads != 0 && tensor.shape.size() > 1;
  const auto n_blocks = [&](int64_t n) { return static_cast<size_t>(n) * row_blocks; };
  if (permuted_rows) {
    for (int64_t i = 0; i < n_rows; ++i) {
      const int64_t row = stored_index(first_row + i, rows, heads);
      dequantize_blocks(tensor.dtype, row_start(row), n_blocks(1), out + i * values);
    }
  } else {
    dequantize_blocks(tensor.dtype, row_start(first_row), n_blocks(n_rows), out);
  }
  if (heads != 0 && !permuted_rows) {  // a bias: its values go the way of the matrix's rows
    const std::vector<float> stored(out, out + values * n_rows);
    for (int64_t i = 0; i < values * n_rows; ++i)
      out[i] = stored[static_cast<size_t>(stored_index(i, values, heads))];
  }
  if (tensor.addend != 0.0f) {
    for (int64_t i = 0; i < values * n_rows; ++i) out[i] += tensor.addend;
  }
}

uint64_t stored_row_bytes(const CheckpointTensor& tensor) {
  const auto& info = dtype_info(tensor.dtype);
  return static_cast<uint64_t>(tensor.row_values()) / info.block_values * info.block_bytes;
}

void read_stored_rows(const CheckpointTensor& tensor, int64_t first_row, int64_t n_rows, std::byte* out) {
  const int64_t rows = tensor.n_rows();
  PLOW_CHECK(tensor.shape.size() > 1 && tensor.addend == 0.0f, "{} is not stored row by row", tensor.name);
  PLOW_CHECK(first_row >= 0 && n_rows >= 0 && first_row <= rows - n_rows, "rows {}+{} of {} in {}", first_row,
             n_rows, rows, tensor.name);
  const uint64_t bytes = stored_row_bytes(tensor);
  for (int64_t i = 0; i < n_rows; ++i, out += bytes) {
    const int64_t row = stored_index(first_row + i, rows, tensor.interleaved_heads);
    std::memcpy(out, tensor.bytes.data() + static_cast<uint64_t>(row) * bytes, bytes);
  }
}

const CheckpointTensor* Checkpoint::find(std::string_view name) const {
  const auto at =
      std::lower_bound(tensors.begin(), tensors.end(), name,
                       [](const CheckpointTensor& tensor, std::string_view n) { return tensor.name < n; });
  return at != tensors.end() && at->name == name ? &*at : nullptr;
}

}  // namespace plow
