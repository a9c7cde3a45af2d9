// What every section of model.pkt is made of: one table for writer and reader.
#pragma once

#include "abi/header.h"

#include <array>
#include <cstdint>

namespace plow {

struct SectionLayout {
  SectionKind kind;
  const char* name;        // in messages
  uint32_t element_bytes;  // 1: a text, whose count is its bytes
};

// In the order of the file. A reader takes a section by its place here; all are always present, empty ones
// too.
constexpr std::array<SectionLayout, 13> kSectionLayouts = {{
    {SectionKind::kPrograms, "programs", sizeof(ProgramEntry)},
    {SectionKind::kWorkers, "workers", sizeof(WorkerEntry)},
    {SectionKind::kPackets, "packets", sizeof(Packet)},
    {SectionKind::kWaits, "waits", sizeof(Wait)},
    {SectionKind::kSignals, "signals", sizeof(Signal)},
    {SectionKind::kStream, "stream", sizeof(StreamEntry)},
    {SectionKind::kTensors, "tensors", sizeof(TensorEntry)},
    {SectionKind::kKvGroups, "KV groups", sizeof(KvGroup)},
    {SectionKind::kSources, "sources", sizeof(SourceTensor)},
    {SectionKind::kGraphText, "graph text", 1},
    {SectionKind::kRewriteLog, "rewrite log", 1},
    {SectionKind::kBuildRecord, "build record", 1},
    {SectionKind::kNames, "names", 1},
}};
static_assert(kSectionLayouts.size() <= kMaxSections);

constexpr uint64_t kSectionAlignment = 64;  // header.h
constexpr uint64_t round_up_to_section(uint64_t bytes) {
  return (bytes + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}

}  // namespace plow
