// The tensor table of a program: what a packet's operands point into.
#pragma once

#include <stdint.h>

namespace plow {

// kQ8_0 and kQ4_0 are of blocks: 32 neighbours of a row share an f16 scale and are stored as integers of 8 and 4 bits. A value is its
// integer (of 4 bits: minus 8) times the scale, which f32 holds exactly. Source: block_q8_0 and block_q4_0 of ggml-common.h.
enum class DType : uint8_t { kF32 = 1, kBf16 = 2, kF16 = 3, kF64 = 4, kU32 = 5, kQ8_0 = 6, kQ4_0 = 7 };

constexpr bool is_of_blocks(DType dtype) { return dtype == DType::kQ8_0 || dtype == DType::kQ4_0; }

// Values of a row that dtype_bytes() are for.
constexpr uint32_t dtype_block_values(DType dtype) { return is_of_blocks(dtype) ? 32 : 1; }

// Bytes of an element, or of a block.
constexpr uint32_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::kF32: return 4;
    case DType::kBf16: return 2;
    case DType::kF16: return 2;
    case DType::kF64: return 8;
    case DType::kU32: return 4;
    case DType::kQ8_0: return 2 + 32;
    case DType::kQ4_0: return 2 + 16;
  }
  return 0;
}

constexpr double bytes_per_value(DType dtype) { return static_cast<double>(dtype_bytes(dtype)) / dtype_block_values(dtype); }

constexpr const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "f32";
    case DType::kBf16: return "bf16";
    case DType::kF16: return "f16";
    case DType::kF64: return "f64";
    case DType::kU32: return "u32";
    case DType::kQ8_0: return "q8_0";
    case DType::kQ4_0: return "q4_0";
  }
  return nullptr;
}

// What the number of rows of a tensor is: fixed, or known only when a step begins.
enum class Rows : uint8_t {
  kFixed = 0,
  kTokens = 1,   // T: rows of tokens in the step
  kSamples = 2,  // S: rows that are sampled in the step
};

constexpr const char* rows_name(Rows rows) {
  switch (rows) {
    case Rows::kFixed: return "1";
    case Rows::kTokens: return "T";
    case Rows::kSamples: return "S";
  }
  return nullptr;
}

// The memory that a tensor lies in. Offsets count from the start of that memory.
enum class Space : uint8_t {
  kTape = 1,   // weights and constants: weights.tape, read only
  kArena = 2,  // activations: shared by buffers whose lifetimes do not overlap
  kKv = 3,     // the KV pool: blocks of tokens
  kStep = 4,   // the columns of the step descriptor (step.h): offset is a StepColumn
};

// How the elements of a matrix lie.
enum class Layout : uint8_t {
  kRowMajor = 1,
  // [row group of 16][column pair][row in group][2]: 64 bytes are 2 columns of 16 rows, so a vector of 16 rows needs no
  // horizontal sum. Rows are padded with zeros to a multiple of 16, columns to a multiple of 2. See isa/x86_64.
  kRows16Pairs = 2,
  // KV: a block holds, for each KV head, K as [head_dim][block_tokens] and then V as [block_tokens][head_dim].
  kKvBlocks = 3,
  // Matrices on GPUs: atoms of 8 rows x 128 bytes. See layout.h.
  kAtoms8x128 = 4,
  // KV on GPUs: a block holds, for each KV head, K and then V, each as [block_tokens][head_dim].
  kKvRows = 5,
  // Matrices of blocks on x86-64: a block of 32 columns of 16 rows follows the other, scales before integers. See layout.h.
  kRows16Blocks = 6,
};

constexpr uint16_t kNoTensor = 0xffff;
constexpr uint32_t kNoSource = 0xffffffffu;

// 48 bytes. `rows` is the number of rows when row_kind is kFixed, else the most that the program allows.
struct TensorEntry {
  uint64_t offset;      // bytes from the start of `space`; for kKv: from the start of a block; for kStep: a StepColumn
  uint64_t bytes;       // that the tensor occupies (for kKv: in one block)
  uint32_t rows;
  uint32_t cols;
  uint32_t row_stride;  // bytes between rows (kRowMajor), else 0
  uint32_t source;      // kTape: index into the bundle's list of source tensors, else kNoSource
  uint32_t kv_group;    // kKv: which block tables lead to it, else 0
  uint32_t node;        // of the operator graph that was tiled
  DType dtype;
  Rows row_kind;
  Space space;
  Layout layout;
  uint32_t reserved;    // zero
};
static_assert(sizeof(TensorEntry) == 48, "TensorEntry is part of the bundle's format");

}  // namespace plow
