// What a worker knows: where memory is, which step runs, and the words that workers and host share. Plain
// structs of pointers that are valid on the device; the runtime fills them in, the interpreter only reads
// them (but for Control).
#pragma once

#include "abi/header.h"
#include "abi/packet.h"
#include "abi/step.h"
#include "interp/device.h"

namespace plow {

// A program's tables in device-visible memory: ProgramView of bundle/ without its bounds, which were checked
// when it was read.
struct ProgramTable {
  const WorkerEntry* workers = nullptr;
  const Packet* packets = nullptr;
  const Wait* waits = nullptr;
  const Signal* signals = nullptr;
  const StreamEntry* stream = nullptr;
  const TensorEntry* tensors = nullptr;
  uint32_t token_row_tile = 1;
  uint32_t sample_row_tile = 1;
  uint32_t n_counters = 0;
};

// Why a step was given up. `worker` waited at its packet `packet` (in its list) for `counter` to reach
// `expected` and saw `seen`. A counter of kDoneWord is the word by which `advance` says that a step is done.
struct Fault {
  static constexpr uint32_t kDoneWord = 0xffffffffu;

  uint32_t worker = 0;
  uint32_t packet = 0;
  uint32_t counter = 0;
  uint32_t seen = 0;
  uint32_t expected = 0;
  uint32_t epoch = 0;
};

// Words that workers write. Each on a line of its own, for the reason that counters are.
struct Control {
  alignas(kCounterLineBytes)
      uint32_t abort;  // not 0: every wait ends at once and the workers go back to the doorbell
  alignas(kCounterLineBytes) uint32_t done;  // epoch of the last step that `advance` finished
  alignas(kCounterLineBytes) Fault fault;  // of whoever set `abort` first; read it when all workers are back
};

// When a worker's packet began to wait, its body began, its signals began, and it was done, by the device's
// clock in nanoseconds; of its last row tile.
struct PacketTimes {
  uint64_t wait, body, signal, end;
};

// The device as all workers see it.
struct Device {
  const ProgramTable* programs = nullptr;
  const unsigned char* tape = nullptr;
  unsigned char* arena = nullptr;
  unsigned char* const* kv_pools = nullptr;  // by KV group
  const KvGroup* kv_groups = nullptr;
  unsigned char* counters = nullptr;  // [kCounterBanks][bank_lines] lines of kCounterLineBytes
  uint32_t bank_lines = 0;            // at least the n_counters of every program
  uint32_t n_workers = 0;
  uint32_t history_stride = 0;  // positions that a slot has in StepDescriptor::history
  uint64_t deadline_ns = 0;     // that one wait may take
  StepDescriptor* step = nullptr;
  Control* control = nullptr;
  PacketTimes* times = nullptr;  // [workers][times_stride]: of the packets of the last step; null: nobody asked
  uint32_t times_stride = 0;
};

// What a team knows of the tape that brings its weights (tape.h).
struct TapePlace {
  void* ring = nullptr;            // TapeRing; null: there is none
  unsigned char* slots = nullptr;  // of its pieces
  uint32_t n_pieces = 0;           // that the team has done with
};

// One worker's own.
struct Worker {
  const Device* device = nullptr;
  uint32_t index = 0;
  unsigned char* scratch = nullptr;  // BundleHeader::scratch_bytes, 64-byte aligned
  uint32_t previous_counters = 0;    // of the program of the step before: what clear_bank has to clear
  unsigned char* shared = nullptr;   // memory of the team's own, 128-byte aligned: what is near (near.h), then the bodies'; none on a CPU
  TapePlace* tape = nullptr;         // in that memory
};

// What a body gets.
struct BodyContext {
  const Device* device;
  const ProgramTable* program;
  const StepDescriptor* step;
  unsigned char* scratch;
  uint32_t step_index;  // 0 .. n_steps - 1
  unsigned char* shared = nullptr;
  TapePlace* tape = nullptr;
};

}  // namespace plow
