// A program of hand-made packets for the shipped interpreter and its workers: what calibration times. Tensors
// hold small numbers that are all alike; only how long they take matters.
#pragma once

#include "cost/units.h"
#include "runtime/device_memory.h"
#include "runtime/worker_threads.h"

#include <memory>
#include <vector>

namespace plow {

struct RigSize {
  uint32_t n_workers = 1;
  uint32_t rows = 1;
  uint32_t samples = 0;
  uint32_t first_position = 0;  // of the first row; all rows are of one sequence
  uint64_t tape_bytes = 0;      // at most that tensors of the tape take together
};

class PacketRig {
 public:
  // Errors: kDoesNotFit, no memory.
  static Result<std::unique_ptr<PacketRig>> create(const RigSize& size);
  PacketRig(const PacketRig&) = delete;
  PacketRig& operator=(const PacketRig&) = delete;

  uint16_t add_arena(uint32_t rows, uint32_t cols);
  uint16_t add_tape(DType dtype, Layout layout, uint32_t rows, uint32_t cols);
  uint16_t add_step(StepColumn column);
  uint16_t add_cache(DType dtype, uint32_t kv_heads, uint32_t head_dim);  // all caches share their blocks

  // A packet over all `cols` columns of its output, as one column tile. REQUIRES that run() has not been
  // called.
  Packet& add_packet(uint32_t worker, Op op, std::initializer_list<uint16_t> operands, uint32_t cols);
  // The last packet of the worker once more, without waits and signals.
  void repeat(uint32_t worker);
  uint32_t add_counter() { return n_counters_++; }
  // The last packet of the worker waits until the counter is `count`, or adds 1 to it.
  void wait(uint32_t worker, uint32_t counter, uint32_t count);
  void signal(uint32_t worker, uint32_t counter);

  // Ends the lists and starts the workers. No packet can be added after it. Errors: those of
  // WorkerThreads::start.
  Status start(IsaLevel level);
  // One step, by the wall clock. REQUIRES start(). Errors (kDevice): a worker waited in vain.
  Result<Nanoseconds> run();

 private:
  struct List {
    std::vector<Packet> packets;
    std::vector<std::vector<Wait>> waits;
    std::vector<std::vector<Signal>> signals;
  };

  PacketRig() = default;
  uint16_t add(TensorEntry entry);
  void end_lists();
  void flatten();
  void set_step();

  RigSize size_;
  std::vector<List> lists_;
  std::vector<TensorEntry> tensors_;
  uint64_t tape_used_ = 0, arena_used_ = 0;
  uint32_t n_counters_ = 0;
  DeviceMemory tape_, arena_, pool_, counters_, scratch_;
  KvGroup group_{0, 16, 0, 1, 0};

  std::vector<WorkerEntry> workers_;
  std::vector<Packet> packets_;
  std::vector<Wait> waits_;
  std::vector<Signal> signals_;
  ProgramTable program_;
  std::vector<uint32_t> token_ids_, positions_, row_slots_, sample_rows_, block_table_, history_;
  std::vector<SamplingParams> sampling_;
  std::vector<Sampled> sampled_;
  std::vector<Span> spans_;
  const uint32_t* tables_[1] = {};
  unsigned char* pools_[1] = {};
  StepDescriptor step_{};
  Control control_{};
  Device device_;
  std::unique_ptr<WorkerThreads> threads_;  // last: uses all of the above
};

}  // namespace plow
