// The weight tape of a team: weights on their way from memory in a ring of the team's own memory, filled by a
// warp that never waits for a counter, so that they arrive while the team waits for its inputs. A piece is the
// atoms of one tile of 8 outputs in one chunk of columns (abi/layout.h); pieces come in the order in which
// the products of the worker's packets take them, which follows from the packets alone (for_pieces).
#pragma once

#include "abi/layout.h"
#include "interp/packet_view.h"
#include "interp/prims.h"

namespace plow::dev {

constexpr uint32_t kPieceBytes = kMostChunkAtoms * kAtomBytes;
// Pieces that a worker asks memory for at once: 48 KiB on each of 132 multiprocessors cover the latency of
// HBM3 at its full rate; more queue in the memory system and delay all.
constexpr uint32_t kPiecesInFlight = 3;

// Words of the team's memory that a tape and its team share. `Barrier` is the ISA's: some threads arrive, or
// bytes do, and whoever looks sees whether a phase has passed.
template <class Barrier, uint32_t kSlots>
struct TapeRing {
  Barrier full[kSlots];   // of each slot: its piece has come
  Barrier empty[kSlots];  // its wave has done with it
  uint32_t order;         // TapeOrder
  uint32_t sent, taken;   // orders
  uint32_t given_up;      // not 0: the step is; cleared by the tape when no piece is on its way
};
enum TapeOrder : uint32_t { kPlaySteps = 1, kStartOver = 2, kEndTape = 3 };

// A team with a tape. Barriers count phases; a phase has passed when as many arrivals as it was made for, and
// all bytes that were announced, have come.
template <class B>
concept HasTape = requires(typename B::Barrier* barrier, unsigned char* to, const unsigned char* from,
                           uint32_t n) {
  B::kTapeSlots;
  B::make_barrier(barrier, n);
  B::drop_barrier(barrier);
  B::arrive(barrier);
  B::passed(barrier, n);                // -> bool: the phase of parity n (0 or 1); what came before it is seen
  B::copy_piece(to, from, n, barrier);  // n bytes are announced and on their way; arrives when they are there
  B::team_word(&n);                     // -> uint32_t: acquires a word of the team's memory
  B::set_team_word(&n, n);              // releases
  B::from_lane(n, n);                   // -> uint32_t: of another lane; every lane of the warp calls
};

template <class B>
using RingOf = TapeRing<typename B::Barrier, B::kTapeSlots>;

// Not inlined: most barriers have passed when somebody looks.
template <class B>
PLOW_DEVICE_CALL void await_long(typename B::Barrier* barrier, uint32_t parity) {
  constexpr uint64_t kPatienceNs = 4'000'000'000;
  constexpr uint32_t kLooksBetweenClocks = 1024;
  uint64_t began = 0;
  PLOW_UNROLL_BY(1)
  for (uint32_t looks = 1; !B::passed(barrier, parity); ++looks) {
    if (looks % kLooksBetweenClocks != 0) continue;
    if (began == 0) began = B::clock_ns();
    if (B::clock_ns() - began > kPatienceNs) B::trap();
  }
}

// A barrier that is to pass within a second or two, else something is broken beyond what a step can report.
template <class B>
PLOW_DEVICE void await(typename B::Barrier* barrier, uint32_t parity) {
  if (!B::passed(barrier, parity)) await_long<B>(barrier, parity);
}

// The team's side. Piece i is wave i % kWaves's, and so is the slot where it comes: a wave never waits for another,
// and cannot see a phase of its barriers pass twice.
template <class B>
PLOW_DEVICE const unsigned char* await_piece(const TapePlace& place, uint32_t piece) {
  static_assert(B::kTapeSlots == B::kWaves);
  const uint32_t slot = B::thread() / B::kLanes;
  await<B>(&static_cast<RingOf<B>*>(place.ring)->full[slot], piece / B::kTapeSlots % 2);
  return place.slots + slot * kPieceBytes;
}
template <class B>
PLOW_DEVICE void done_with_piece(const TapePlace& place) {
  B::settle_wave();
  if (B::thread() % B::kLanes == 0)
    B::arrive(&static_cast<RingOf<B>*>(place.ring)->empty[B::thread() / B::kLanes]);
}

// Thread 0 of the team: what the tape is to do next, when it has taken what it was told before.
template <class B>
PLOW_DEVICE void order_tape(TapePlace& place, TapeOrder order) {
  auto* ring = static_cast<RingOf<B>*>(place.ring);
  const uint32_t sent = B::team_word(&ring->sent);
  if (order == kStartOver) B::set_team_word(&ring->given_up, 1);
  while (B::team_word(&ring->taken) != sent) B::pause();
  B::set_team_word(&ring->order, order);
  B::set_team_word(&ring->sent, sent + 1);
  while (order == kStartOver && B::team_word(&ring->given_up) != 0) B::pause();
}

// The team: the steps of a call begin; they were given up.
template <class B>
PLOW_DEVICE void begin_tape(TapePlace& place) {
  if (B::thread() == 0) order_tape<B>(place, kPlaySteps);
}
template <class B>
PLOW_DEVICE void give_up_tape(TapePlace& place) {
  if (B::thread() == 0) {
    order_tape<B>(place, kStartOver);
    place.n_pieces = 0;
  }
  B::settle();
}

// The tape's side: what it remembers.
struct TapeState {
  uint32_t issued = 0, landed = 0;
};

template <class B>
PLOW_DEVICE void make_ring(RingOf<B>& ring) {
  PLOW_UNROLL_BY(1)
  for (uint32_t slot = 0; slot < B::kTapeSlots; ++slot) {
    B::make_barrier(&ring.full[slot], 1);
    B::make_barrier(&ring.empty[slot], 1);
  }
}

template <class B>
PLOW_DEVICE void await_landed(RingOf<B>& ring, TapeState& state, uint32_t at_least) {
  PLOW_UNROLL_BY(1)
  for (; state.landed < at_least; ++state.landed)
    await<B>(&ring.full[state.landed % B::kTapeSlots], state.landed / B::kTapeSlots % 2);
}

// Asks for a piece as soon as there is a slot for it. False when the step was given up.
template <class B>
PLOW_DEVICE bool issue_piece(RingOf<B>& ring, unsigned char* slots, TapeState& state,
                             const unsigned char* from, uint32_t bytes) {
  const uint32_t slot = state.issued % B::kTapeSlots, round = state.issued / B::kTapeSlots;
  if (state.issued >= kPiecesInFlight) await_landed<B>(ring, state, state.issued - kPiecesInFlight + 1);
  while (round > 0 && !B::passed(&ring.empty[slot], (round - 1) % 2)) {
    if (B::team_word(&ring.given_up) != 0) return false;
  }
  B::copy_piece(slots + slot * kPieceBytes, from, bytes, &ring.full[slot]);
  ++state.issued;
  return true;
}

}  // namespace plow::dev
