// The counter protocol: waits that can be given up, signals, the bank of a step, and the three protocol
// packets (src/ops/README.md).
#pragma once

#include "interp/packet_view.h"
#include "interp/prims.h"
#include "interp/stream.h"

namespace plow::dev {

// Spins between two looks at the clock, each with a pause of 40 to 140 cycles: some ten microseconds, after
// which the worker offers its processor to others, since it may be what they lack.
constexpr uint32_t kSpinsBeforeYield = 256;
// The most that the time between two looks at the clock counts towards the deadline: a process that was
// stopped, or a worker that got no processor, was not waiting for a counter.
constexpr uint64_t kMostBetweenLooksNs = 100'000'000;

PLOW_DEVICE uint32_t* counter_word(const Device& device, uint32_t bank, uint32_t counter) {
  return reinterpret_cast<uint32_t*>(device.counters +
                                     (size_t{bank} * device.bank_lines + counter) * kCounterLineBytes);
}

// Waits until `word` is at least `fault.expected`. False when the step was given up: by another, or by us, as
// `fault` then says.
template <class I>
PLOW_DEVICE bool wait_word(const Device& device, const uint32_t* word, Fault fault, WeightStream& stream) {
  uint64_t last = 0, waited = 0;
  for (uint32_t spins = 1;; ++spins) {
    fault.seen = I::poll(word);
    const uint32_t aborted = I::poll(&device.control->abort);
    if (fault.seen >= fault.expected) {
      I::polled();
      return true;
    }
    if (aborted != 0) return false;
    if constexpr (HasPrefetch<I>) prefetch_stream<I>(stream, device.tape, kLinesPerSpin);
    I::pause();
    if (spins % kSpinsBeforeYield != 0) continue;
    I::yield();
    const uint64_t now = I::clock_ns();
    if (last != 0) waited += now - last < kMostBetweenLooksNs ? now - last : kMostBetweenLooksNs;
    last = now;
    if (waited <= device.deadline_ns) continue;
    if (I::set_if_zero(&device.control->abort, 1)) device.control->fault = fault;
    return false;
  }
}

PLOW_DEVICE uint32_t wait_target(const ProgramTable& program, const StepDescriptor& step, const Wait& wait) {
  return wait.per_row_tile * n_row_tiles(program, step, wait.rows) + wait.constant;
}

PLOW_DEVICE uint32_t banded(uint32_t counter, Band band, uint32_t row_tile) {
  return band == Band::kRow ? counter + row_tile : counter;
}

// Zeroes the counters of the step before. They are used again two steps from now.
template <class I>
PLOW_DEVICE void clear_bank(const Device& device, uint32_t epoch, uint32_t n_counters) {
  const uint32_t bank = (epoch + kCounterBanks - 1) % kCounterBanks;
  PLOW_UNROLL_BY(1)
  for (uint32_t i = I::thread(); i < n_counters; i += I::n_threads())
    I::store_relaxed(counter_word(device, bank, i), 0);
}

// Feeds the sampled tokens back when another of the K steps is to run, then says that the step is done.
// REQUIRES, when n_steps > 1, that sample s is of row s alone of its slot (step.h).
template <class I>
PLOW_DEVICE void advance(const Device& device, uint32_t epoch, uint32_t step_index) {
  StepDescriptor& step = *device.step;
  if (step_index + 1 < step.n_steps) {
    const Sampled* sampled = step.sampled + size_t{step_index} * step.n_samples;
    PLOW_UNROLL_BY(1)
    for (uint32_t s = 0; s < step.n_samples; ++s) {
      const uint32_t row = step.sample_rows[s];
      const uint32_t position = ++step.positions[row];
      step.token_ids[row] = sampled[s].token;
      step.history[size_t{step.row_slots[row]} * device.history_stride + position] = sampled[s].token;
    }
    step.step = step_index + 1;
  }
  I::store_release(&device.control->done, epoch);
}

}  // namespace plow::dev
