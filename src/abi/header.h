// The header and sections of model.pkt. Everything is little-endian and addressed from the start of the file. Sections follow each other
// in the header's order, each at the next multiple of 64 bytes, the last one ends the file. The device memory that a bundle needs is a function of this header alone (plan.h of bundle/).
#pragma once

#include <stdint.h>

#include "abi/packet.h"
#include "abi/tensor.h"

namespace plow {

constexpr uint64_t kBundleMagic = 0x31574f4c50574f4cull;  // "LOWPLOW1"
constexpr uint32_t kAbiVersion = 1;

enum class Isa : uint32_t {
#define PLOW_ISA(number, Name, text, vendor) k##Name = number,
#include "abi/isas.def"
};

constexpr const char* isa_name(Isa isa) {
  switch (isa) {
#define PLOW_ISA(number, Name, text, vendor) \
  case Isa::k##Name: return text;
#include "abi/isas.def"
  }
  return nullptr;
}

// "cpu", or who makes the GPUs that it is of.
constexpr const char* isa_vendor(Isa isa) {
  switch (isa) {
#define PLOW_ISA(number, Name, text, vendor) \
  case Isa::k##Name: return vendor;
#include "abi/isas.def"
  }
  return nullptr;
}

enum class SectionKind : uint32_t {
  kPrograms = 1,   // ProgramEntry[]
  kWorkers = 2,    // WorkerEntry[], program-major
  kPackets = 3,    // Packet[], program-major, then worker, in order of execution
  kWaits = 4,      // Wait[]
  kSignals = 5,    // Signal[]
  kStream = 6,     // StreamEntry[]
  kTensors = 7,    // TensorEntry[], program-major
  kKvGroups = 8,   // KvGroup[]
  kSources = 9,    // SourceTensor[]: the checkpoint tensors in the tape
  kGraphText = 10,     // the operator graph after rewriting, as text
  kRewriteLog = 11,    // text: which rule fired where
  kBuildRecord = 12,   // JSON: versions, options, digests of inputs
  kNames = 13,         // bytes of the names that SourceTensor points into
};

struct Section {
  SectionKind kind;
  uint32_t count;   // of elements; bytes for texts
  uint64_t offset;
  uint64_t bytes;
};
static_assert(sizeof(Section) == 24);

// One way of cutting the work. Row counts are run-time values up to the maxima.
struct ProgramEntry {
  uint32_t max_rows;         // T may be 1 .. max_rows
  uint32_t max_samples;      // S may be 0 .. max_samples
  uint32_t token_row_tile;   // rows of a row tile that counts T
  uint32_t sample_row_tile;  // ... that counts S
  uint32_t first_packet, n_packets;
  uint32_t first_wait, n_waits;
  uint32_t first_signal, n_signals;
  uint32_t first_stream, n_stream;
  uint32_t first_tensor, n_tensors;  // operands count from first_tensor
  uint32_t n_counters;               // lines of a bank
  uint32_t reserved;
  uint64_t arena_bytes;
  double predicted_ns;               // of a step of one row (or of max_rows rows), by the cost model
};
static_assert(sizeof(ProgramEntry) == 80);

// One worker's lists in one program; packets and stream entries count from the program's first.
struct WorkerEntry {
  uint32_t first_packet, n_packets;
  uint32_t first_stream, n_stream;
};
static_assert(sizeof(WorkerEntry) == 16);

// Layers whose caches live and die together: all full-attention layers, or all layers of one window.
struct KvGroup {
  uint32_t window;        // 0: every position stays; else only the last `window` positions are ever read
  uint32_t block_tokens;  // positions of a block
  uint64_t block_bytes;   // of all layers of the group
  uint32_t n_layers;
  uint32_t reserved;
};
static_assert(sizeof(KvGroup) == 24);

struct SourceTensor {
  uint32_t name_offset, name_bytes;  // in kNames
  uint64_t tape_offset, tape_bytes;
  uint64_t digest_low, digest_high;  // XXH3-128 of the packed bytes
};
static_assert(sizeof(SourceTensor) == 40);

constexpr uint32_t kMaxSections = 16;

struct BundleHeader {
  uint64_t magic;
  uint32_t abi_version;
  Isa isa;
  uint32_t n_workers;
  uint32_t n_sections;
  uint64_t file_bytes;
  uint64_t tape_bytes;
  uint64_t tape_digest_low, tape_digest_high;   // XXH3-128 of weights.tape
  uint64_t body_digest_low, body_digest_high;   // XXH3-128 of this whole file, these two fields zero
  uint32_t vocab;
  uint32_t max_context;  // positions that a sequence may have
  uint32_t max_slots;    // sequences that may be in the cache at once
  DType kv_dtype;
  uint8_t reserved0[3];
  uint32_t n_layers;
  uint32_t hidden;
  uint32_t scratch_bytes;  // that each worker needs for its bodies
  uint32_t reserved1;
  Section sections[kMaxSections];
};
static_assert(sizeof(BundleHeader) == 104 + 24 * kMaxSections, "BundleHeader is part of the bundle's format");

}  // namespace plow
