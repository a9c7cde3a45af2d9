// Who runs an engine's steps: this machine's processors, or a GPU. The engine knows requests, slots and
// blocks; a device knows memory, workers, counters and epochs.
#pragma once

#include "abi/step.h"
#include "base/error.h"
#include "bundle/bundle.h"
#include "interp/context.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plow {

// What a device must have room for. The spans outlive it.
struct DevicePlan {
  const BundleFile* bundle = nullptr;
  std::span<const std::byte> tape;
  uint32_t slots = 0, context = 0;
  uint32_t max_rows = 0, max_samples = 0;
  std::vector<uint32_t> kv_blocks;  // by KV group
  uint32_t table_width = 0;
  std::chrono::nanoseconds deadline{};  // of one wait
  bool random_weights = false;          // the tape is empty and is to be made on the device
  bool trace = false;                   // packets note their times
};

class StepDevice {
 public:
  virtual ~StepDevice() = default;

  // Runs the steps of the descriptor, whose epoch it sets; its arrays are the caller's. Afterwards `sampled`
  // holds the tokens, or the fault says why the steps were given up; the device can be used on. Errors
  // (kDevice): the device itself is lost.
  virtual Result<std::optional<Fault>> run(StepDescriptor& step) = 0;

  // Tokens of a slot that no step submits, since their cache is there already; for what reads histories.
  // A device that reads the caller's array has nothing to do.
  virtual Status write_history(uint32_t /*slot*/, uint32_t /*position*/, std::span<const uint32_t> /*tokens*/) {
    return {};
  }

  // Bytes of the activations, as the last step left them.
  virtual Status read_arena(uint64_t offset, std::span<std::byte> to) = 0;

  // The times of the packets of the last step, by worker and place in its list; of packets without a row tile
  // in that step, those of an earlier one. Errors (kUsage): the plan did not ask for a trace.
  virtual Result<std::vector<std::vector<PacketTimes>>> read_times(uint32_t program) = 0;

  virtual std::string name() const = 0;

  // Bytes a second at which the workers together read the weights, measured now; the floor of a step. 0 where
  // the caller can measure it itself.
  virtual Result<double> read_bandwidth() { return 0.0; }
};

// Epochs count up to here; then counters and epochs start again, so that no comparison ever sees one wrap.
constexpr uint32_t kLastEpoch = 0xf0000000u;

// Packets of the longest list of a worker.
inline uint32_t longest_list(const BundleFile& bundle) {
  uint32_t most = 0;
  for (const ProgramView& program : bundle.programs())
    for (const WorkerEntry& worker : program.workers) most = std::max(most, worker.n_packets);
  return most;
}

// A program's tables where the bundle has them.
inline ProgramTable table_of(const ProgramView& view) {
  return {view.workers.data(),        view.packets.data(),         view.waits.data(),
          view.signals.data(),        view.stream.data(),          view.tensors.data(),
          view.entry->token_row_tile, view.entry->sample_row_tile, view.entry->n_counters};
}

}  // namespace plow
