// The memories of one device and the values in them: tape, arena, KV pools, and the columns of the step.
// Elements are read and written as doubles, whatever their dtype and layout.
#pragma once

#include "abi/step.h"
#include "bundle/bundle.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace plow::reference {

// The step as the device sees it; `advance` changes it.
struct StepColumns {
  std::vector<uint32_t> token_ids, positions, row_slots;  // [T]
  std::vector<uint32_t> span_first;                       // [T]: the first position of the row's span
  std::vector<uint32_t> sample_rows;                      // [S]
  std::vector<SamplingParams> sampling;                   // [S]
  std::vector<Sampled> sampled;                           // [S] of the step that runs
  std::vector<std::vector<uint32_t>> block_tables;        // by KV group: [slots][table_width]
  uint32_t table_width = 0;
};

// Where elements of the cache lie, in elements of the cache's dtype from the start of the group's pool.
struct KvPlace {
  uint64_t key = 0, value = 0;
};

class Memory {
 public:
  Memory(const BundleFile& bundle, std::span<const std::byte> tape, std::span<const uint32_t> pool_blocks);

  // NaN everywhere in the arena: what is read without having been written spreads.
  void poison_arena();
  void poison_kv();

  // Columns [begin, end) of a row. REQUIRES a tensor of the tape or the arena, and that bundle/ has checked
  // its extent.
  void load(const TensorEntry& tensor, uint32_t row, uint32_t begin, uint32_t end, double* out) const;
  // REQUIRES a tensor of the arena.
  void store(const TensorEntry& tensor, uint32_t row, uint32_t begin, uint32_t end, const double* values);

  // The block that the table gives for a position, and the place of one element (kv head and column in the
  // head) in it.
  KvPlace kv_place(const TensorEntry& tensor, uint32_t block, uint32_t position, uint32_t head,
                   uint32_t head_dim, uint32_t column) const;
  double load_kv(uint32_t group, uint64_t element) const;
  void store_kv(uint32_t group, uint64_t element, double value);

  uint64_t kv_elements(uint32_t group) const { return kv_[group].size() / dtype_bytes(kv_dtype_); }
  uint32_t block_tokens(uint32_t group) const { return groups_[group].block_tokens; }

 private:
  std::span<const KvGroup> groups_;
  DType kv_dtype_;
  std::span<const std::byte> tape_;
  std::vector<std::byte> arena_;
  std::vector<std::vector<std::byte>> kv_;  // by group
};

}  // namespace plow::reference
