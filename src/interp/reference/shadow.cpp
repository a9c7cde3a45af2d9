#include "interp/reference/shadow.h"

#include <algorithm>

namespace plow::reference {

Shadow::Shadow(uint64_t n_elements, uint32_t n_workers)
    : n_workers_(n_workers), cells_(n_elements), read_ticks_(n_elements * n_workers, 0) {}

void Shadow::forget() {
  step_ = 0;
  std::fill(cells_.begin(), cells_.end(), Cell{});
}

std::optional<Conflict> Shadow::check_read(const Cell& cell, uint64_t element, const Content& content,
                                           bool fresh, const Accessor& by) const {
  const bool now = cell.write_step == step_;
  if (cell.write_step == 0 || (fresh && !now))
    return Conflict{FindingKind::kNeverWritten, element, true, 0, 0, {}};
  if (now && cell.write_tick > by.clock[cell.write_worker]) {
    return Conflict{FindingKind::kUnorderedRead, element, true, cell.write_worker, cell.write_tick, {}};
  }
  if (!(cell.content == content)) {
    return Conflict{FindingKind::kWrongContent, element,     true, cell.write_worker,
                    now ? cell.write_tick : 0,  cell.content};
  }
  return std::nullopt;
}

std::optional<Conflict> Shadow::check_write(const Cell& cell, uint64_t element, const Accessor& by) const {
  if (cell.write_step == step_ && cell.write_tick > by.clock[cell.write_worker]) {
    return Conflict{FindingKind::kUnorderedWrite, element, true, cell.write_worker, cell.write_tick, {}};
  }
  if (cell.read_step != step_) return std::nullopt;
  const uint32_t* ticks = read_ticks_.data() + element * n_workers_;
  for (uint32_t w = 0; w < n_workers_; ++w) {
    if (ticks[w] > by.clock[w])
      return Conflict{FindingKind::kUnorderedWrite, element, false, w, ticks[w], {}};
  }
  if (ticks[by.worker] == by.tick)
    return Conflict{FindingKind::kOwnInput, element, false, by.worker, by.tick, {}};
  return std::nullopt;
}

std::optional<Conflict> Shadow::read(uint64_t first, uint64_t count, const Content& content, bool fresh,
                                     const Accessor& by) {
  std::optional<Conflict> conflict;
  for (uint64_t element = first; element < first + count; ++element) {
    Cell& cell = cells_[element];
    if (!conflict) conflict = check_read(cell, element, content, fresh, by);
    uint32_t* ticks = read_ticks_.data() + element * n_workers_;
    if (cell.read_step != step_) {
      cell.read_step = step_;
      std::fill_n(ticks, n_workers_, 0);
    }
    ticks[by.worker] = by.tick;
  }
  return conflict;
}

std::optional<Conflict> Shadow::write(uint64_t first, uint64_t count, const Content& content,
                                      const Accessor& by) {
  std::optional<Conflict> conflict;
  for (uint64_t element = first; element < first + count; ++element) {
    Cell& cell = cells_[element];
    if (!conflict) conflict = check_write(cell, element, by);
    // Reads before this write need not be kept: what comes after the write in order comes after them.
    cell = {content, step_, by.tick, 0, by.worker};
  }
  return conflict;
}

}  // namespace plow::reference
