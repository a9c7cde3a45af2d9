// Validation of what model.pkt says, once its bytes are known to be whole: every number that somebody will
// index, add or divide with. BundleFile calls these; nobody else needs to.
#pragma once

#include "abi/header.h"
#include "base/error.h"
#include "bundle/bundle.h"

#include <cstdint>
#include <span>

namespace plow {

// No memory of any machine is larger; sums of a few such numbers do not overflow 64 bits.
constexpr uint64_t kMostBytes = uint64_t{1} << 56;

// Row tiles of a step with the most rows that the program allows; 1 for kFixed.
uint64_t max_row_tiles(const ProgramEntry& entry, Rows rows);

// The facts of the header that do not depend on sections. Errors: kInput.
Status check_header(const BundleHeader& header);

struct BundleParts {
  const BundleHeader* header = nullptr;
  std::span<const ProgramEntry> programs;
  std::span<const KvGroup> kv_groups;
  std::span<const SourceTensor> sources;
  uint64_t names_bytes = 0;
};

// KV groups, sources, and that the memory of the largest use is a number. REQUIRES check_header to have
// passed.
Status check_parts(const BundleParts& parts);

// Tables of one program. REQUIRES that the views are cut by counts that fit the sections.
Status check_program(const BundleParts& parts, const ProgramView& program);

// What a packet's operator demands of its operands and attributes (ops/README.md), so that a body can index
// and divide without a look. REQUIRES the operands' indices to be in range. Errors say what does not fit.
Status check_operator(const BundleParts& parts, const ProgramView& program, const Packet& packet);

}  // namespace plow
