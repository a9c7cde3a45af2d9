// The interpreter's loop, written once for every instruction set: a worker plays its list of packets, step
// after step, until the K steps of the descriptor are done or the step is given up. Where a worker is a team,
// all its threads run the loop and share out its waits and signals.
#pragma once

#include "interp/near.h"
#include "interp/protocol.h"
#include "interp/tape.h"

namespace plow::dev {

// A packet and what it refers to.
struct PacketRun {
  const Packet* packet;
  const Wait* waits;
  const Signal* signals;
  uint32_t index;  // in the worker's list
};

// Waits for all that row tile `row_tile` of the packet needs. A wait without a band that was met for the
// first row tile holds for all. The team's threads share the counters out, so that many take no longer than
// one; even where there is none the team must settle between two packets: the one may read what the other's
// threads wrote.
template <class I>
PLOW_DEVICE bool wait_packet(StepRun& run, const PacketRun& one, uint32_t row_tile) {
  bool met = true;
  PLOW_UNROLL_BY(1)
  for (uint32_t i = I::thread(); i < one.packet->n_waits && met; i += I::n_threads()) {
    const Wait& wait = one.waits[i];
    if (wait.band == Band::kNone && row_tile != one.packet->row_first) continue;
    const uint32_t counter = banded(wait.counter, wait.band, row_tile);
    const Fault fault{run.worker, one.index, counter, 0, wait_target(*run.program, *run.body.step, wait),
                      run.epoch};
    met = wait_word<I>(*run.device, counter_word(*run.device, run.bank, counter), fault, run.stream);
  }
  return I::all(met);
}

template <class I>
PLOW_DEVICE void signal_packet(const StepRun& run, const PacketRun& one, uint32_t row_tile) {
  const uint32_t n_signals = one.packet->n_signals;
  if (n_signals == 0) return;
  I::settle();
  PLOW_UNROLL_BY(1)
  for (uint32_t i = I::thread(); i < n_signals; i += I::n_threads()) {
    const Signal& signal = one.signals[i];
    I::add_release(counter_word(*run.device, run.bank, banded(signal.counter, signal.band, row_tile)), 1);
  }
}

// Thread 0 notes the time where a trace was asked for; `at` of PacketTimes.
template <class I>
PLOW_DEVICE void note_time(const StepRun& run, const PacketRun& one, uint64_t PacketTimes::*at) {
  const Device& device = *run.device;
  if (device.times == nullptr || I::thread() != 0) return;
  device.times[size_t{run.worker} * device.times_stride + one.index].*at = I::clock_ns();
}

// All row tiles of one packet; false when the step was given up.
template <class I, class Bodies>
PLOW_DEVICE bool run_packet(StepRun& run, const PacketRun& one, uint32_t previous_counters) {
  const Packet& packet = *one.packet;
  const uint32_t n_tiles = n_row_tiles(*run.program, *run.body.step, static_cast<Rows>(packet.row_kind));
  PLOW_UNROLL_BY(1)
  for (uint32_t row_tile = packet.row_first; row_tile < n_tiles; row_tile += packet.row_stride) {
    note_time<I>(run, one, &PacketTimes::wait);
    if (!wait_packet<I>(run, one, row_tile)) return false;
    note_time<I>(run, one, &PacketTimes::body);
    switch (static_cast<Op>(packet.body)) {
      case Op::kLeave:
        break;
      case Op::kClearBank:
        clear_bank<I>(*run.device, run.epoch, previous_counters);
        break;
      case Op::kAdvance:
        if (I::thread() == 0) advance<I>(*run.device, run.epoch, run.body.step_index);
        break;
      default:
        Bodies::template run<I>(run.body, packet, row_tile);
    }
    note_time<I>(run, one, &PacketTimes::signal);
    signal_packet<I>(run, one, row_tile);
    note_time<I>(run, one, &PacketTimes::end);
  }
  if constexpr (HasPrefetch<I>) end_stream_packet(run.stream, one.index);
  return true;
}

// The packets of a worker's list, one after the other: where they lie, or in the team's own memory.
template <class I, class Bodies>
PLOW_DEVICE bool run_list(StepRun& run, const ProgramTable& program, const WorkerEntry& lists,
                          uint32_t previous_counters) {
  PLOW_UNROLL_BY(1)
  for (uint32_t i = 0; i < lists.n_packets; ++i) {
    const Packet& packet = program.packets[lists.first_packet + i];
    const PacketRun one{&packet, program.waits + packet.wait_first, program.signals + packet.signal_first, i};
    if (!run_packet<I, Bodies>(run, one, previous_counters)) return false;
  }
  return true;
}
template <class I, class Bodies>
PLOW_DEVICE bool run_near_list(StepRun& run, NearList& list, uint32_t previous_counters) {
  const ProgramTable& program = list.near->program;
  PLOW_UNROLL_BY(1)
  for (uint32_t i = 0; i < list.n; ++i) {
    const NearPacket& near = near_packet(list, 0);
    const Packet& packet = near.packet;
    send_for_next<I>(list);
    const PacketRun one{
        &packet, packet.n_waits <= kNearWaits ? near.waits : program.waits + packet.wait_first,
        packet.n_signals <= kNearSignals ? near.signals : program.signals + packet.signal_first, i};
    if (!run_packet<I, Bodies>(run, one, previous_counters)) return false;
    settle_staged<I>();
    next_packet(list);
  }
  return true;
}

// See run_steps.
template <class I, class Bodies>
PLOW_DEVICE bool run_each_step(Worker& worker) {
  const Device* device = worker.device;
  const StepDescriptor* step = device->step;
  const ProgramTable* program = &device->programs[step->program];
  const WorkerEntry lists = program->workers[worker.index];
  const uint32_t n_steps = step->n_steps, first_epoch = step->epoch, n_counters = program->n_counters;
  NearList list{};
  unsigned char* shared = worker.shared;
  StepRun own{}, &run = HasStage<I> ? reinterpret_cast<Near*>(shared)->run : own;
  if constexpr (HasStage<I>) {
    list = open_list<I>(shared, *device, *program, lists);
    device = &list.near->device;
    step = &list.near->step;
    program = &list.near->program;
    shared += kNearBytes;
  }
  PLOW_UNROLL_BY(1)
  for (uint32_t k = 0; k < n_steps; ++k) {
    const uint32_t epoch = first_epoch + k;
    if (!HasStage<I> || I::thread() == 0)
      run = {device,
             program,
             {device, program, step, worker.scratch, k, shared, worker.tape},
             worker.index,
             epoch,
             epoch % kCounterBanks,
             {program->stream + lists.first_stream, lists.n_stream}};
    if constexpr (HasStage<I>) I::settle();
    bool done;
    if constexpr (HasStage<I>) {
      done = run_near_list<I, Bodies>(run, list, worker.previous_counters);
    } else {
      done = run_list<I, Bodies>(run, *program, lists, worker.previous_counters);
    }
    if (!done) return false;
    worker.previous_counters = n_counters;
    if (k + 1 == n_steps) break;  // the host waits for this step itself
    const Fault fault{worker.index, lists.n_packets, Fault::kDoneWord, 0, epoch, epoch};
    done = I::thread() != 0 || wait_word<I>(*device, &device->control->done, fault, run.stream);
    if (!I::all(done)) return false;
  }
  return true;
}

// All steps of the descriptor. False when they were given up (Control::abort is set then). Step k of them has
// epoch `step->epoch` + k.
template <class I, class Bodies>
PLOW_DEVICE bool run_steps(Worker& worker) {
  static_assert(IsWorker<I>);
  if constexpr (HasTape<I>) begin_tape<I>(*worker.tape);
  const bool done = run_each_step<I, Bodies>(worker);
  if constexpr (HasTape<I>) {
    if (!done) give_up_tape<I>(*worker.tape);
  }
  return done;
}

}  // namespace plow::dev
