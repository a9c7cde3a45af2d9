// What an Engine is made of; for engine.cpp and load.cpp only.
#pragma once

#include "runtime/device_memory.h"
#include "runtime/engine.h"
#include "runtime/kv_cache.h"
#include "runtime/step_device.h"

#include <memory>
#include <vector>

namespace plow {

// The arrays that a step descriptor points to, with room for the largest step.
struct StepArrays {
  std::vector<Span> spans;
  std::vector<uint32_t> token_ids, positions, row_slots, sample_rows;
  std::vector<SamplingParams> sampling;
  std::vector<Sampled> sampled;               // [kMaxSteps][max samples]
  std::vector<Sampled> top;                   // [max samples][kMaxSteps * kMaxTop]
  std::vector<const uint32_t*> block_tables;  // by KV group
  std::vector<uint32_t> history;              // [slots][history_stride]
};

struct SlotState {
  bool open = false;
  uint32_t position = 0;  // tokens so far
  uint32_t named = 0;     // of these, in blocks that have names: they must not change
};

struct Engine::State {
  BundleFile bundle;
  MappedFile tape_file;  // empty when the caller holds the tape, or it was copied
  DeviceMemory weights;  // the copy
  std::span<const std::byte> tape;
  IsaLevel isa = IsaLevel::kAuto;
  uint32_t context = 0;
  uint32_t max_rows = 0, max_samples = 0;

  std::unique_ptr<KvCache> cache;
  std::vector<SlotState> slots;
  StepArrays arrays;
  StepDescriptor step{};
  std::unique_ptr<StepDevice> device;
};

}  // namespace plow
