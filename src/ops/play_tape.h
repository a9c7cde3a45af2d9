// The warp that plays a team's tape, from launch to end. Its lanes read the worker's next packets side by side;
// the first lane then asks for their pieces one by one.
#pragma once

#include "interp/resident.h"
#include "ops/linear/product_team_body.h"
#include "ops/products.h"

namespace plow::dev {

// The pieces of a packet.
struct TapeRun {
  const unsigned char *matrix, *up;
  uint32_t row_tiles, chunk_bytes;
  Range chunks, columns;
  uint32_t times;  // once for each of its row tiles
  bool gated;
};

// False when the packet has none in this step.
PLOW_DEVICE bool tape_run(const Device& device, const ProgramTable& program, const Packet& packet, TapeRun& run) {
  Product product{};
  if (!product_of(packet, program.tensors, product) || !comes_by_tape(packet, product)) return false;
  const uint32_t row_tiles = n_row_tiles(program, *device.step, static_cast<Rows>(packet.row_kind));
  if (row_tiles <= packet.row_first) return false;
  const TensorEntry& matrix = *product.matrix;
  const AtomShape shape = atom_shape(matrix.rows, matrix.cols, sizeof(Bf16));
  run.times = ceil_div(row_tiles - packet.row_first, packet.row_stride);
  run.gated = product.up != nullptr;
  run.matrix = device.tape + matrix.offset;
  run.up = run.gated ? device.tape + product.up->offset : nullptr;
  run.row_tiles = shape.row_tiles;
  run.chunk_bytes = static_cast<uint32_t>(shape.chunk_bytes());
  run.chunks = ProductRows{nullptr, &product, 0, 0, shape, sizeof(Bf16)}.chunks();
  run.columns = {0, 0};
  for_columns(packet, product.out->cols, [&](uint32_t begin, uint32_t end) { run.columns = {begin, end}; });
  return true;
}

// In the order in which the team takes them; false when the step was given up.
template <class B>
PLOW_DEVICE bool issue_run(RingOf<B>& ring, unsigned char* slots, TapeState& state, const TapeRun& run) {
  bool goes_on = true;
  PLOW_UNROLL_BY(1)
  for (uint32_t time = 0; time < run.times; ++time) {
    for_passes(run.gated, run.columns.begin, run.columns.end, [&](const ProductPass& pass) {
      PLOW_UNROLL_BY(1)
      for (uint32_t chunk = run.chunks.begin; chunk < run.chunks.end; ++chunk) {
        PLOW_UNROLL_BY(1)
        for (uint32_t slot = 0; slot < pass.n_slots() && goes_on; ++slot) {
          const uint64_t at = (uint64_t{chunk} * run.row_tiles + pass.tile(slot)) * run.chunk_bytes;
          goes_on =
              issue_piece<B>(ring, slots, state, (slot < pass.n ? run.matrix : run.up) + at, run.chunk_bytes);
        }
      }
    });
  }
  return goes_on;
}

// One step's packets; false when it was given up.
template <class B>
PLOW_DEVICE bool play_step(const Device& device, const ProgramTable& program, uint32_t worker, RingOf<B>& ring,
                           unsigned char* slots, TapeState& state) {
  const WorkerEntry& list = program.workers[worker];
  const uint32_t lane = B::thread() % B::kLanes;
  PLOW_UNROLL_BY(1)
  for (uint32_t base = 0; base < list.n_packets; base += B::kLanes) {
    TapeRun run{};
    const bool has = base + lane < list.n_packets &&
                     tape_run(device, program, program.packets[list.first_packet + base + lane], run);
    PLOW_UNROLL_BY(1)
    for (uint32_t i = 0; i < B::kLanes; ++i) {
      if (B::from_lane(has ? 1u : 0u, i) == 0) continue;
      const TapeRun one{reinterpret_cast<const unsigned char*>(B::from_lane(reinterpret_cast<uint64_t>(run.matrix), i)),
                        reinterpret_cast<const unsigned char*>(B::from_lane(reinterpret_cast<uint64_t>(run.up), i)),
                        B::from_lane(run.row_tiles, i),
                        B::from_lane(run.chunk_bytes, i),
                        {B::from_lane(run.chunks.begin, i), B::from_lane(run.chunks.end, i)},
                        {B::from_lane(run.columns.begin, i), B::from_lane(run.columns.end, i)},
                        B::from_lane(run.times, i),
                        B::from_lane(run.gated ? 1u : 0u, i) != 0};
      uint32_t goes_on = 1;
      if (lane == 0) goes_on = issue_run<B>(ring, slots, state, one) ? 1 : 0;
      if (B::from_lane(goes_on, 0) == 0) return false;
    }
  }
  return true;
}

// A step was given up: what is on its way must arrive before its place is used again.
template <class B>
PLOW_DEVICE void start_over(RingOf<B>& ring, TapeState& state) {
  await_landed<B>(ring, state, state.issued);
  state = {};
  PLOW_UNROLL_BY(1)
  for (uint32_t slot = 0; slot < B::kTapeSlots; ++slot) {
    B::drop_barrier(&ring.full[slot]);
    B::drop_barrier(&ring.empty[slot]);
  }
  make_ring<B>(ring, B::n_threads() / B::kLanes);
  B::set_team_word(&ring.given_up, 0);
}

// REQUIRES that the ring is as make_ring left a ring of zeros before any thread came here.
template <class B>
PLOW_DEVICE void play_tape(const Resident& resident, uint32_t worker, RingOf<B>& ring, unsigned char* slots) {
  const Device& device = resident.device;
  const bool first = B::thread() % B::kLanes == 0;
  TapeState state;
  PLOW_UNROLL_BY(1)
  for (uint32_t taken = 0;; ++taken) {
    while (B::team_word(&ring.sent) == taken) B::pause();
    const uint32_t order = B::team_word(&ring.order);
    B::settle_wave();
    if (first) B::set_team_word(&ring.taken, taken + 1);
    if (order == kEndTape) return;
    if (order == kStartOver) {
      if (first) start_over<B>(ring, state);
      continue;
    }
    const ProgramTable& program = device.programs[device.step->program];
    const uint32_t n_steps = device.step->n_steps;
    PLOW_UNROLL_BY(1)
    for (uint32_t k = 0; k < n_steps; ++k) {
      if (!play_step<B>(device, program, worker, ring, slots, state)) break;
    }
  }
}

}  // namespace plow::dev
