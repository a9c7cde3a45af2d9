// The warp that plays a team's tape, from launch to end. Its lanes read the worker's next packets side by side;
// the first lane then asks for their pieces one by one.
#pragma once

#include "interp/resident.h"
#include "ops/linear/group_pass.h"
#include "ops/linear/piece_pass.h"
#include "ops/products.h"

namespace plow::dev {

// The pieces of a packet.
struct TapeRun {
  const unsigned char *matrix, *up;  // up: null when it has one matrix
  uint32_t row_tiles, chunk_atoms;   // of the matrix
  Range chunks, columns;
  Range rows;  // of the step, from the packet's first row tile on
  uint32_t tile_rows, rows_apart;  // of a row tile; from the beginning of one to that of the next
};

// False when the packet has none in this step.
template <class B>
PLOW_DEVICE bool tape_run(const Device& device, const ProgramTable& program, const Packet& packet, TapeRun& run) {
  Product product{};
  if (!has_one_range(packet) || !product_of(packet, program.tensors, product) || !comes_in_pieces(product)) return false;
  const Rows kind = static_cast<Rows>(packet.row_kind);
  if (is_for_group<B>(program, packet)) return false;
  run.tile_rows = row_tile_size(program, kind);
  run.rows_apart = packet.row_stride * run.tile_rows;
  run.rows = {packet.row_first * run.tile_rows, step_rows(*device.step, kind)};
  if (run.rows.begin >= run.rows.end) return false;
  const AtomShape shape = piece_shape(*product.matrix);
  run.matrix = device.tape + product.matrix->offset;
  run.up = product.up != nullptr ? device.tape + product.up->offset : nullptr;
  run.row_tiles = shape.row_tiles;
  run.chunk_atoms = shape.chunk_atoms;
  run.chunks = product_chunks(product, shape.chunk_atoms);
  run.columns = only_range(packet, product.out->cols);
  return true;
}

// The pieces of a window of a pass.
template <class B>
PLOW_DEVICE bool issue_window(RingOf<B>& ring, unsigned char* slots, TapeState& state, const TapeRun& run,
                              uint32_t first_tile, uint32_t n_tiles, Range window) {
  const uint32_t n_slots = run.up != nullptr ? 2 * n_tiles : n_tiles, bytes = run.chunk_atoms * kAtomBytes;
  PLOW_UNROLL_BY(1)
  for (uint32_t slot = 0; slot < n_slots; ++slot) {
    const unsigned char* matrix = slot < n_tiles ? run.matrix : run.up;
    const uint32_t tile = first_tile + (slot < n_tiles ? slot : slot - n_tiles);
    PLOW_UNROLL_BY(1)
    for (uint32_t chunk = window.begin; chunk < window.end; ++chunk) {
      const uint64_t at = (uint64_t{chunk} * run.row_tiles + tile) * bytes;
      if (!issue_piece<B>(ring, slots, state, matrix + at, bytes)) return false;
    }
  }
  return true;
}

// Those of a few rows.
template <class B>
PLOW_DEVICE bool issue_rows(RingOf<B>& ring, unsigned char* slots, TapeState& state, const TapeRun& run,
                            uint32_t n_rows) {
  bool goes_on = true;
  const PiecePlan plan = piece_plan(run.chunks, run.chunk_atoms, run.up != nullptr, n_rows);
  for_piece_passes(plan, run.columns.begin, run.columns.end, [&](uint32_t first_tile, uint32_t n_tiles) {
    PLOW_UNROLL_BY(1)
    for (uint32_t chunk = plan.chunks.begin; chunk < plan.chunks.end && goes_on; chunk += plan.window)
      goes_on = issue_window<B>(ring, slots, state, run, first_tile, n_tiles,
                                {chunk, min_u32(chunk + plan.window, plan.chunks.end)});
  });
  return goes_on;
}

// In the order in which piece_team_body takes them; false when the step was given up.
template <class B>
PLOW_DEVICE bool issue_run(RingOf<B>& ring, unsigned char* slots, TapeState& state, const TapeRun run) {
  PLOW_UNROLL_BY(1)
  for (uint32_t tile = run.rows.begin; tile < run.rows.end; tile += run.rows_apart) {
    const uint32_t end = min_u32(tile + run.tile_rows, run.rows.end);
    PLOW_UNROLL_BY(1)
    for (uint32_t row = tile; row < end; row += kPieceRows) {
      if (!issue_rows<B>(ring, slots, state, run, min_u32(kPieceRows, end - row))) return false;
    }
  }
  return true;
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
                     tape_run<B>(device, program, program.packets[list.first_packet + base + lane], run);
    PLOW_UNROLL_BY(1)
    for (uint32_t i = 0; i < B::kLanes; ++i) {
      if (B::from_lane(has ? 1u : 0u, i) == 0) continue;
      const TapeRun one{
          reinterpret_cast<const unsigned char*>(B::from_lane(reinterpret_cast<uint64_t>(run.matrix), i)),
          reinterpret_cast<const unsigned char*>(B::from_lane(reinterpret_cast<uint64_t>(run.up), i)),
          B::from_lane(run.row_tiles, i),
          B::from_lane(run.chunk_atoms, i),
          {B::from_lane(run.chunks.begin, i), B::from_lane(run.chunks.end, i)},
          {B::from_lane(run.columns.begin, i), B::from_lane(run.columns.end, i)},
          {B::from_lane(run.rows.begin, i), B::from_lane(run.rows.end, i)},
          B::from_lane(run.tile_rows, i),
          B::from_lane(run.rows_apart, i)};
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
  make_ring<B>(ring);
  B::set_team_word(&ring.given_up, 0);
}

// Not inlined into the kernel, whose registers it would share and which would spill its loop's.
// REQUIRES that the ring is as make_ring left a ring of zeros before any thread came here.
template <class B>
PLOW_DEVICE_CALL void play_tape(const Resident& resident, uint32_t worker, RingOf<B>& ring, unsigned char* slots) {
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
