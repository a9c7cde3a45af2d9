// A worker's stream list on a machine with caches: while a worker waits, the weights that its next packets
// read are brought nearer. It never waits for anything.
#pragma once

#include "abi/packet.h"
#include "interp/prims.h"

namespace plow::dev {

// Bytes that may be on their way or in the cache before their packet ends: half of the smallest L2 of the
// parts that we know (512 KiB, Zen 3), so that activations keep the other half.
constexpr uint32_t kPrefetchBytes = 256 * 1024;
// Lines asked for between two looks at a counter. A core has 10 to 16 line fill buffers; more would stall the
// look.
constexpr uint32_t kLinesPerSpin = 8;
// Of 64 bytes on every machine with such caches.
constexpr uint32_t kStreamLineBytes = 64;

struct WeightStream {
  const StreamEntry* entries;
  uint32_t n_entries;
  uint32_t first = 0;   // the oldest entry whose packet has not ended
  uint32_t cursor = 0;  // the entry to be prefetched next, at least `first`
  uint32_t offset = 0;  // bytes of it that were
  uint32_t ahead = 0;   // bytes prefetched from the beginning of `first` on
};

// Asks for up to `n_lines` lines more.
template <class I>
PLOW_DEVICE void prefetch_stream(WeightStream& stream, const unsigned char* tape, uint32_t n_lines) {
  while (n_lines > 0 && stream.cursor < stream.n_entries && stream.ahead < kPrefetchBytes) {
    const StreamEntry& entry = stream.entries[stream.cursor];
    if (entry.kv == 0 && stream.offset < entry.bytes) {
      I::prefetch(tape + entry.offset + stream.offset);
      stream.offset += kStreamLineBytes;
      stream.ahead += kStreamLineBytes;
      --n_lines;
    } else {
      ++stream.cursor;
      stream.offset = 0;
    }
  }
}

// The worker's packet `packet` has ended: its entries are behind us.
PLOW_DEVICE void end_stream_packet(WeightStream& stream, uint32_t packet) {
  while (stream.first < stream.n_entries &&
         stream.entries[stream.first].packet == static_cast<uint16_t>(packet)) {
    const StreamEntry& entry = stream.entries[stream.first];
    const uint32_t bytes = entry.kv == 0 ? ceil_div(entry.bytes, kStreamLineBytes) * kStreamLineBytes : 0;
    if (stream.first < stream.cursor) {
      stream.ahead -= bytes;
    } else {
      stream.ahead = 0;
      stream.offset = 0;
      stream.cursor = stream.first + 1;
    }
    ++stream.first;
  }
}

}  // namespace plow::dev
