// A packet: one piece of work for one worker, 64 bytes, immutable once written. Little-endian. The layout is pinned by the
// assertions below, by docs/packet-abi.md (generated) and by the proofs.
//
// A packet covers a set of tiles of one operator: columns col_first, col_first + col_stride, ... (col_count of them), for row
// tiles row_first, row_first + row_stride, ... as long as they exist in the step. How many row tiles there are is known only when
// the step begins: ceil(T / row_tile) or ceil(S / row_tile), by the row kind of the operator (row_kind).
//
// For each of its row tiles r, in ascending order, the packet waits, does its columns, and signals. The tensor entry of its output names
// the graph node that it came from; where the output is the cache (kv_append), it names the leaf that holds that state.
#pragma once

#include <stdint.h>

#include "abi/op.h"
#include "abi/tensor.h"

namespace plow {

constexpr uint32_t kPacketOperands = 6;    // inputs and output; attention with split KV will need the most
constexpr uint32_t kPacketImmediates = 5;  // the attributes of the operator, in the order of its definition

enum PacketFlags : uint16_t {
  kPacketTimed = 1,  // write a trace record
};

struct Packet {
  uint16_t body;        // Op
  uint16_t flags;       // PacketFlags
  uint8_t row_kind;     // Rows: what row tiles count; kFixed: exactly one row tile
  uint8_t n_waits;
  uint8_t n_signals;
  uint8_t variant;      // which device body of the operator, 0 the general one
  uint32_t col_first;
  uint16_t col_count;
  uint16_t col_stride;
  uint16_t row_first;
  uint16_t row_stride;  // at least 1
  uint16_t operand[kPacketOperands];  // indices into the tensor table: inputs in order, then the output; kNoTensor when absent
  uint32_t wait_first;    // index into the program's waits
  uint32_t signal_first;  // index into the program's signals
  uint32_t immediate[kPacketImmediates];  // bit patterns of u32 or f32
  uint32_t tile_cols;   // columns of the output that a column tile has (the last may have fewer)
};
static_assert(sizeof(Packet) == 64, "a packet is 64 bytes");

// How a wait or a signal picks its counter, given the packet's row tile r.
enum class Band : uint8_t {
  kNone = 0,  // counter
  kRow = 1,   // counter + r: the counters of row tiles 0, 1, ... follow each other
};

// Wait until the counter is at least per_row_tile * R + constant, where R is the number of row tiles of `rows` in the step.
// A wait with Band::kNone that has been met for the first row tile of a packet is met for all.
struct Wait {
  uint32_t counter;
  uint32_t per_row_tile;  // a
  uint32_t constant;      // b
  Rows rows;              // whose row tiles R counts
  Band band;
  uint16_t reserved;      // zero
};
static_assert(sizeof(Wait) == 16, "Wait is part of the bundle's format");

// Add 1 to the counter, releasing all that the packet wrote for this row tile.
struct Signal {
  uint32_t counter;
  Band band;
  uint8_t scope;  // 0: this device; 1: peers too
  uint16_t reserved;
};
static_assert(sizeof(Signal) == 8, "Signal is part of the bundle's format");

// An entry of a worker's stream list: bytes of the tape, in the order in which the worker's packets consume them. It never waits for
// a counter. On a CPU it drives the prefetch distance, on a GPU a warp plays it into the ring. KV ranges, which the step's lengths
// resolve, have kv_group + 1 in `kv` and the tensor in `offset`.
struct StreamEntry {
  uint64_t offset;  // from the start of the tape
  uint32_t bytes;
  uint16_t kv;      // 0: weights
  uint16_t packet;  // the packet that consumes it, counted within the worker's execution list modulo 65536
};
static_assert(sizeof(StreamEntry) == 16, "StreamEntry is part of the bundle's format");

// Counters lie one to a line, so that workers that wait for different counters do not share one.
constexpr uint32_t kCounterLineBytes = 128;
// A step uses bank `epoch % kCounterBanks`; a packet of the next step clears it.
constexpr uint32_t kCounterBanks = 3;

}  // namespace plow
