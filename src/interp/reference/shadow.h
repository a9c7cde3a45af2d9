// A shadow of one memory: for each element who wrote it last, with what, and who has read it since. Exact,
// element by element; an access is checked against the order that its worker's clock knows of, so a conflict
// is found whichever of the two came first.
#pragma once

#include "interp/reference/machine.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plow::reference {

// Who accesses: an instance, by its worker and its number among the worker's instances of the step (from 1),
// and what the worker knows.
struct Accessor {
  uint32_t worker = 0;
  uint32_t tick = 0;
  std::span<const uint32_t> clock;
};

// What an element holds: whose it is (the tensor; for the cache, which outlives programs, its node) and, in
// the cache, of which position and token.
struct Content {
  uint64_t owner = 0;
  uint32_t position = 0, token = 0;
  bool operator==(const Content&) const = default;
};

// What is wrong with an access at `element`, and the instance of the other access where there is one (tick 0:
// none in this step).
struct Conflict {
  FindingKind kind;
  uint64_t element = 0;
  bool other_writes = false;
  uint32_t other_worker = 0;
  uint32_t other_tick = 0;
  Content found;  // kWrongContent: what is there
};

class Shadow {
 public:
  Shadow(uint64_t n_elements, uint32_t n_workers);

  // Everything before is ordered before everything from now on.
  void begin_step() { ++step_; }
  void forget();  // as new

  // A read finds what was written as the same content, in this step when `fresh`, else ever.
  std::optional<Conflict> read(uint64_t first, uint64_t count, const Content& content, bool fresh,
                               const Accessor& by);
  std::optional<Conflict> write(uint64_t first, uint64_t count, const Content& content, const Accessor& by);

 private:
  struct Cell {
    Content content;
    uint32_t write_step = 0;  // 0: never
    uint32_t write_tick = 0;
    uint32_t read_step = 0;  // 0: no read since the write
    uint32_t write_worker = 0;
  };

  std::optional<Conflict> check_read(const Cell& cell, uint64_t element, const Content& content, bool fresh,
                                     const Accessor& by) const;
  std::optional<Conflict> check_write(const Cell& cell, uint64_t element, const Accessor& by) const;

  uint32_t n_workers_;
  uint32_t step_ = 0;
  std::vector<Cell> cells_;
  std::vector<uint32_t> read_ticks_;  // [element][worker]: of the reads in read_step
};

}  // namespace plow::reference
