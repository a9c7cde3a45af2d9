// The kernel that stays on a GPU: it is launched once and serves steps from a mailbox in host memory until it
// is told to stop or nothing was asked of it for a while. Host and device code both read this.
//
// Worker 0 hears the bell: it copies the descriptor and its arrays from host memory, so that no other worker
// reads across the bus (but for masks of sampling, where they lie), lets the others go, and when all are back writes tokens and outcome to the host.
#pragma once

#include "interp/loop.h"

namespace plow {

// Memory of the host that the device sees, one line a direction.
struct Mailbox {
  alignas(kCounterLineBytes) uint32_t bell;    // host: how many calls there were; grows by one a call
  uint32_t stop;                               // host: not 0: the kernel ends
  alignas(kCounterLineBytes) uint32_t served;  // device: the last call whose outcome is below
  uint32_t aborted;                            // it was given up, as `fault` says
  Fault fault;
  // The step; its arrays lie in the host's memory, too. History is not read: the device keeps its own.
  alignas(kCounterLineBytes) StepDescriptor step;
};

// What a kernel is launched with, in device memory. `device.step` has arrays with room for the largest step.
struct Resident {
  Device device;
  Mailbox* mailbox;
  uint32_t* go;         // device: the call that workers may begin
  uint32_t* back;       // device: workers that are back, over all calls of this launch
  uint32_t first_call;  // the bell before this launch's first call
  uint32_t n_kv_groups;
  uint32_t* const* tables;  // by KV group, as device.step->block_tables, to be written
  Span* spans;              // likewise
  uint32_t *row_slots, *sample_rows;
  SamplingParams* sampling;
  unsigned char* scratch;  // scratch_stride bytes a worker
  uint64_t scratch_stride;
  uint64_t idle_ns;  // after which the kernel ends by itself
};

namespace dev {

constexpr uint32_t kStopServing = 0xffffffffu;  // in Resident::go
constexpr uint32_t kBellsBetweenClocks = 64;

// Worker 0: the step of the mailbox becomes the device's.
template <class I>
PLOW_DEVICE void receive_step(const Resident& resident) {
  const StepDescriptor& from = resident.mailbox->step;
  StepDescriptor& to = *resident.device.step;
  const uint32_t rows = from.n_rows, samples = from.n_samples, spans = from.n_spans, steps = from.n_steps;
  copy_words<I>(to.token_ids, from.token_ids, rows);
  copy_words<I>(to.positions, from.positions, rows);
  copy_words<I>(resident.row_slots, from.row_slots, rows);
  copy_words<I>(resident.sample_rows, from.sample_rows, samples);
  copy_words<I>(resident.sampling, from.sampling, samples);
  copy_words<I>(resident.spans, from.spans, spans);
  PLOW_UNROLL_BY(1)
  for (uint32_t s = 0; s < spans; ++s) {
    const Span span = from.spans[s];
    PLOW_UNROLL_BY(1)
    for (uint32_t g = 0; g < resident.n_kv_groups; ++g) {
      const size_t row = size_t{span.slot} * to.table_width;
      const uint32_t positions = span.first_position + span.n_rows + steps - 1;
      const uint32_t blocks = ceil_div(positions, resident.device.kv_groups[g].block_tokens);
      copy_words<I>(resident.tables[g] + row, from.block_tables[g] + row, blocks);
    }
    uint32_t* history = to.history + size_t{span.slot} * resident.device.history_stride + span.first_position;
    copy_words<I>(history, from.token_ids + span.first_row, span.n_rows);
  }
  if (I::thread() == 0) {
    to.epoch = from.epoch;
    to.program = from.program;
    to.n_rows = rows;
    to.n_samples = samples;
    to.n_spans = spans;
    to.n_steps = steps;
    to.step = 0;
    resident.device.control->abort = 0;
  }
  I::settle();
}

// Worker 0, thread 0: the next call, or kStopServing.
template <class I>
PLOW_DEVICE uint32_t hear_bell(const Resident& resident, uint32_t served) {
  const uint64_t began = I::clock_ns();
  for (uint32_t looks = 1;; ++looks) {
    if (I::load_acquire_system(&resident.mailbox->stop) != 0) return kStopServing;
    const uint32_t bell = I::load_acquire_system(&resident.mailbox->bell);
    if (bell != served) return bell;
    I::pause();
    if (looks % kBellsBetweenClocks == 0 && I::clock_ns() - began > resident.idle_ns) return kStopServing;
  }
}

// Worker 0: when all workers are back, the outcome goes to the host. A worker that does not come back has
// given up its wait within the deadline or stands in a body, which always ends.
template <class I>
PLOW_DEVICE void report_step(const Resident& resident, uint32_t call) {
  const Device& device = resident.device;
  if (I::thread() == 0) {
    const uint32_t all = (call - resident.first_call) * device.n_workers;
    while (I::load_acquire(resident.back) < all) I::pause();
  }
  I::settle();
  const StepDescriptor& from = resident.mailbox->step;
  copy_words<I>(from.sampled, device.step->sampled, from.n_steps * from.n_samples);
  I::settle();
  if (I::thread() != 0) return;
  resident.mailbox->aborted = device.control->abort;
  resident.mailbox->fault = device.control->fault;
  I::store_release_system(&resident.mailbox->served, call);
}

// One worker, from launch to end.
template <class I, class Bodies>
PLOW_DEVICE void serve(const Resident& resident, uint32_t index, unsigned char* shared, TapePlace tape = {}) {
  static_assert(HasSystemWords<I> && (HasStage<I> || !HasTape<I>));
  Worker worker{&resident.device, index, resident.scratch + index * resident.scratch_stride, 0, shared};
  if constexpr (HasTape<I>) {
    worker.tape = &reinterpret_cast<Near*>(shared)->tape;
    if (I::thread() == 0) *worker.tape = tape;  // the team agrees on its first call before it is looked at
  }
  for (uint32_t call = resident.first_call;;) {
    uint32_t next = 0;
    if (I::thread() == 0) {
      if (index == 0) {
        next = hear_bell<I>(resident, call);
      } else {
        do {
          I::pause();
          next = I::load_acquire(resident.go);
        } while (next == call);
      }
    }
    next = I::agree(next);
    if (index == 0) {
      if (next != kStopServing) receive_step<I>(resident);
      if (I::thread() == 0) I::store_release(resident.go, next);
    }
    if (next == kStopServing) {
      if constexpr (HasTape<I>) {
        if (I::thread() == 0) order_tape<I>(*worker.tape, kEndTape);
      }
      return;
    }
    call = next;
    (void)run_steps<I, Bodies>(worker);  // what became of it is in Control
    I::settle();
    if (I::thread() == 0) I::add_release(resident.back, 1);
    if (index == 0) report_step<I>(resident, call);
  }
}

}  // namespace dev
}  // namespace plow
