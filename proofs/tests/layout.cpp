// Prints what the C++ compiler takes the layout of a bundle's records for, and the numbers that mean
// something to a verifier, in the words of `plow_verify --layout`.
#include "abi/header.h"
#include "abi/step.h"

#include <cstddef>
#include <cstdio>

using namespace plow;

#define SIZE(type) std::printf("%s %zu\n", #type, sizeof(type))
#define FIELD(type, field) \
  std::printf("%s.%s %zu %zu\n", #type, #field, offsetof(type, field), sizeof(type::field))

#define NUMBER(name) std::printf("%s = %d\n", #name, static_cast<int>(name))

namespace {

void print_numbers() {
  NUMBER(kAbiVersion);
  NUMBER(kNoTensor);
  NUMBER(SectionKind::kPrograms);
  NUMBER(SectionKind::kWorkers);
  NUMBER(SectionKind::kPackets);
  NUMBER(SectionKind::kWaits);
  NUMBER(SectionKind::kSignals);
  NUMBER(SectionKind::kTensors);
  NUMBER(SectionKind::kKvGroups);
  NUMBER(Space::kTape);
  NUMBER(Space::kArena);
  NUMBER(Space::kKv);
  NUMBER(Space::kStep);
  NUMBER(Band::kNone);
  NUMBER(Band::kRow);
  NUMBER(StepColumn::kSampled);
  NUMBER(Rows::kFixed);
  NUMBER(Rows::kTokens);
  NUMBER(Rows::kSamples);
  NUMBER(Layout::kRowMajor);
  NUMBER(Layout::kRows16Pairs);
  NUMBER(Layout::kKvBlocks);
  NUMBER(Layout::kAtoms8x128);
  NUMBER(Layout::kKvRows);
  NUMBER(Layout::kRows16Blocks);
  NUMBER(Op::kLeave);
  NUMBER(Op::kClearBank);
  NUMBER(Op::kAdvance);
  std::printf("kBundleMagic = %llu\n", static_cast<unsigned long long>(kBundleMagic));
  for (int n = 0; n < 16; ++n) std::printf("bytes of DType %d = %u\n", n, dtype_bytes(static_cast<DType>(n)));
    // Operators, without leaves and protocol; those of rewriting are among them.
#define PLOW_OP(number, Name, text) std::printf("operator %d = %s\n", number, #text);
#include "abi/ops.def"
}

}  // namespace

int main() {
  SIZE(BundleHeader);
  SIZE(Section);
  SIZE(ProgramEntry);
  SIZE(WorkerEntry);
  SIZE(Packet);
  SIZE(Wait);
  SIZE(Signal);
  SIZE(TensorEntry);
  SIZE(KvGroup);
  FIELD(BundleHeader, magic);
  FIELD(BundleHeader, abi_version);
  FIELD(BundleHeader, n_workers);
  FIELD(BundleHeader, n_sections);
  FIELD(BundleHeader, file_bytes);
  FIELD(BundleHeader, tape_bytes);
  FIELD(BundleHeader, sections);
  FIELD(Section, kind);
  FIELD(Section, count);
  FIELD(Section, offset);
  FIELD(ProgramEntry, max_rows);
  FIELD(ProgramEntry, max_samples);
  FIELD(ProgramEntry, token_row_tile);
  FIELD(ProgramEntry, sample_row_tile);
  FIELD(ProgramEntry, first_packet);
  FIELD(ProgramEntry, n_packets);
  FIELD(ProgramEntry, first_wait);
  FIELD(ProgramEntry, n_waits);
  FIELD(ProgramEntry, first_signal);
  FIELD(ProgramEntry, n_signals);
  FIELD(ProgramEntry, first_tensor);
  FIELD(ProgramEntry, n_tensors);
  FIELD(ProgramEntry, n_counters);
  FIELD(ProgramEntry, arena_bytes);
  FIELD(WorkerEntry, first_packet);
  FIELD(WorkerEntry, n_packets);
  FIELD(Packet, body);
  FIELD(Packet, row_kind);
  FIELD(Packet, n_waits);
  FIELD(Packet, n_signals);
  FIELD(Packet, col_first);
  FIELD(Packet, col_count);
  FIELD(Packet, col_stride);
  FIELD(Packet, row_first);
  FIELD(Packet, row_stride);
  FIELD(Packet, operand);
  FIELD(Packet, wait_first);
  FIELD(Packet, signal_first);
  FIELD(Packet, immediate);
  FIELD(Packet, tile_cols);
  FIELD(Wait, counter);
  FIELD(Wait, per_row_tile);
  FIELD(Wait, constant);
  FIELD(Wait, rows);
  FIELD(Wait, band);
  FIELD(Signal, counter);
  FIELD(Signal, band);
  FIELD(TensorEntry, offset);
  FIELD(TensorEntry, bytes);
  FIELD(TensorEntry, rows);
  FIELD(TensorEntry, cols);
  FIELD(TensorEntry, row_stride);
  FIELD(TensorEntry, kv_group);
  FIELD(TensorEntry, dtype);
  FIELD(TensorEntry, row_kind);
  FIELD(TensorEntry, space);
  FIELD(TensorEntry, layout);
  FIELD(KvGroup, block_tokens);
  FIELD(KvGroup, block_bytes);
  print_numbers();
}
