// Whether a program's tables order every conflict of a step, by brute force and apart from the machine: the
// closure of what is certain to come before each instance, as sets, and every pair of accesses to every
// element. For small programs.
#pragma once

#include "bundle/bundle.h"
#include "interp/reference/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace plow::reference {

class OrderOracle {
 public:
  OrderOracle(const ProgramView& program, std::span<const KvGroup> groups, const StepInput& input)
      : program_(program), groups_(groups), input_(input) {
    for (const Span& span : input.spans) {
      for (uint32_t r = 0; r < span.n_rows; ++r)
        rows_.push_back({span.slot, span.first_position + r, span.first_position});
    }
    list_instances();
    list_signals();
    close();
    for (uint32_t i = 0; i < instances_.size(); ++i) list_accesses(i);
  }

  // Empty: every output element is made once, every conflict is ordered, every read sees its own tensor's
  // write, and the end comes last.
  std::string disorder() const {
    for (const auto& [element, accesses] : accesses_) {
      for (const Touch& a : accesses) {
        const std::string found = a.writes ? disordered_write(a, accesses) : disordered_read(a, accesses);
        if (!found.empty()) return fmt::format("element {:#x}: {}", element, found);
      }
    }
    for (const auto& [element, count] : made_) {
      if (count != 1) return fmt::format("output element {:#x} is made {} times", element, count);
    }
    for (uint32_t i = 0; i < instances_.size(); ++i) {
      if (op(i) != Op::kAdvance) continue;
      for (uint32_t j = 0; j < instances_.size(); ++j) {
        if (i != j && !before_[i][j]) return "advance may come before " + name(j);
      }
    }
    return "";
  }

 private:
  struct Instance {
    uint32_t worker, packet, row_tile;
    bool first_row_tile;
  };
  struct Row {
    uint32_t slot, position, span_first;
  };
  struct Touch {
    uint32_t instance;
    uint16_t tensor;
    bool writes;
    bool needs_write;  // a read of what this step must have written
  };
  using Set = std::vector<bool>;

  Op op(uint32_t i) const { return static_cast<Op>(packet(i).body); }
  const Packet& packet(uint32_t i) const { return program_.packets[instances_[i].packet]; }
  std::string name(uint32_t i) const {
    return fmt::format("p{}[{}]", instances_[i].packet, instances_[i].row_tile);
  }
  uint32_t live(Rows kind) const {
    return kind == Rows::kTokens    ? static_cast<uint32_t>(input_.token_ids.size())
           : kind == Rows::kSamples ? static_cast<uint32_t>(input_.sample_rows.size())
                                    : 1;
  }
  uint32_t tile(Rows kind) const {
    return kind == Rows::kTokens    ? program_.entry->token_row_tile
           : kind == Rows::kSamples ? program_.entry->sample_row_tile
                                    : 1;
  }
  uint32_t tiles(Rows kind) const { return (live(kind) + tile(kind) - 1) / tile(kind); }

  void list_instances() {
    for (uint32_t w = 0; w < program_.workers.size(); ++w) {
      for (uint32_t p = 0; p < program_.workers[w].n_packets; ++p) {
        const uint32_t index = program_.workers[w].first_packet + p;
        const Packet& packet = program_.packets[index];
        for (uint32_t r = packet.row_first; r < tiles(static_cast<Rows>(packet.row_kind));
             r += packet.row_stride) {
          instances_.push_back({w, index, r, r == packet.row_first});
        }
      }
    }
  }

  void list_signals() {
    signals_.resize(program_.entry->n_counters);
    for (uint32_t i = 0; i < instances_.size(); ++i) {
      for (uint32_t s = 0; s < packet(i).n_signals; ++s) {
        const Signal& signal = program_.signals[packet(i).signal_first + s];
        signals_[signal.counter + (signal.band == Band::kRow ? instances_[i].row_tile : 0)].push_back(i);
      }
    }
  }

  // X is certain once `threshold` signals were seen when the signals that need not come after X are fewer.
  bool certain(const std::vector<uint32_t>& signals, uint64_t threshold, uint32_t x) const {
    uint64_t without = 0;
    for (const uint32_t s : signals) without += s != x && !before_[s][x];
    return without < threshold;
  }

  Set next(uint32_t i) const {
    Set set = before_[i];
    if (i > 0 && instances_[i - 1].worker == instances_[i].worker) {
      set[i - 1] = true;
      for (uint32_t x = 0; x < set.size(); ++x) set[x] = set[x] || before_[i - 1][x];
    }
    for (uint32_t w = 0; w < packet(i).n_waits; ++w) {
      const Wait& wait = program_.waits[packet(i).wait_first + w];
      if (wait.band == Band::kNone && !instances_[i].first_row_tile) continue;
      const auto& signals = signals_[wait.counter + (wait.band == Band::kRow ? instances_[i].row_tile : 0)];
      const uint64_t threshold = uint64_t{wait.per_row_tile} * tiles(wait.rows) + wait.constant;
      for (uint32_t x = 0; x < set.size(); ++x) set[x] = set[x] || certain(signals, threshold, x);
    }
    return set;
  }

  void close() {
    before_.assign(instances_.size(), Set(instances_.size(), false));
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t i = 0; i < instances_.size(); ++i) {
        Set set = next(i);
        changed = changed || set != before_[i];
        before_[i] = std::move(set);
      }
    }
  }

  void touch(uint64_t element, const Touch& touch) { accesses_[element].push_back(touch); }

  void list_accesses(uint32_t i) {
    constexpr uint64_t kSampledElements = uint64_t{2} << 60;
    if (op(i) == Op::kAdvance) {
      for (uint32_t s = 0; s < live(Rows::kSamples); ++s)
        touch(kSampledElements + s, {i, kNoTensor, false, true});
    }
    if (is_protocol(op(i))) return;
    const Packet& p = packet(i);
    const auto shapes = operand_shapes(program_, p);
    const OpInstance instance = op_instance(p, shapes);
    for (uint32_t t = 0; t < p.col_count; ++t) {
      const uint32_t begin = (p.col_first + t * p.col_stride) * p.tile_cols;
      const uint32_t end = std::min(begin + p.tile_cols, instance.output().cols);
      std::vector<Access> footprint;
      tile_rule(instance.op)->footprint(instance, begin, end, footprint);
      for (const Access& access : footprint) {
        const uint16_t index = p.operand[access.operand];
        const TensorEntry& tensor = program_.tensors[index];
        if (tensor.space == Space::kArena) touch_arena(i, index, access);
        if (tensor.space == Space::kKv) touch_cache(i, index, access);
        if (tensor.space == Space::kStep && access.writes) {
          for_rows(i, tensor, access, [&](uint32_t row) {
            touch(kSampledElements + row, {i, kNoTensor, true, false});
          });
        }
      }
      const uint16_t output = p.operand[instance.operands.size() - 1];
      for (uint32_t c = begin; c < end; ++c)
        ++made_[uint64_t{output} << 48 | uint64_t{instances_[i].row_tile} << 24 | c];
    }
  }

  template <class F>
  void for_rows(uint32_t i, const TensorEntry& tensor, const Access& access, const F& f) const {
    const Rows kind = static_cast<Rows>(packet(i).row_kind);
    const uint32_t first = access.rows == RowAccess::kTile ? instances_[i].row_tile * tile(kind) : 0;
    const uint32_t end =
        access.rows == RowAccess::kTile ? std::min(first + tile(kind), live(kind)) : live(tensor.row_kind);
    for (uint32_t row = first; row < end; ++row) f(row);
  }

  void touch_arena(uint32_t i, uint16_t index, const Access& access) {
    const TensorEntry& tensor = program_.tensors[index];
    for_rows(i, tensor, access, [&](uint32_t row) {
      for (uint32_t c = access.col_begin; c < access.col_end; ++c) {
        touch((tensor.offset + uint64_t{row} * tensor.row_stride) / 4 + c,
              {i, index, access.writes, !access.writes});
      }
    });
  }

  // Slots have blocks of their own here, so slot and position name a cell; keys and values go together.
  void touch_cache(uint32_t i, uint16_t index, const Access& access) {
    const TensorEntry& tensor = program_.tensors[index];
    const Rows kind = static_cast<Rows>(packet(i).row_kind);
    const uint32_t begin = instances_[i].row_tile * tile(kind);
    const uint32_t end = std::min(begin + tile(kind), live(kind));
    std::map<std::pair<uint32_t, uint32_t>, bool> cells;  // slot, position -> written in this step
    for (uint32_t r = begin; r < end; ++r) {
      const Row& row = rows_[kind == Rows::kSamples ? input_.sample_rows[r] : r];
      const uint32_t window = packet(i).immediate[1];
      const uint32_t first = access.writes                              ? row.position
                             : window == 0 || row.position + 1 < window ? 0
                                                                        : row.position + 1 - window;
      for (uint32_t p = first; p <= row.position; ++p) cells[{row.slot, p}] = p >= row.span_first;
    }
    for (const auto& [cell, fresh] : cells) {
      for (uint32_t c = access.col_begin; c < access.col_end; ++c) {
        const uint64_t element = uint64_t{1} << 60 | uint64_t{tensor.kv_group} << 56 |
                                 uint64_t{cell.first} << 48 | uint64_t{cell.second} << 32 |
                                 (tensor.offset / 4 + c);
        touch(element, {i, index, access.writes, !access.writes && fresh});
      }
    }
  }

  bool ordered(const Touch& a, const Touch& b) const {
    return a.instance != b.instance && (before_[a.instance][b.instance] || before_[b.instance][a.instance]);
  }

  std::string disordered_write(const Touch& write, const std::vector<Touch>& all) const {
    for (const Touch& other : all) {
      if (&other != &write && !ordered(write, other))
        return fmt::format("{} and {} in no order", name(write.instance), name(other.instance));
    }
    return "";
  }

  // The write that a read sees is the last of those before it.
  std::string disordered_read(const Touch& read, const std::vector<Touch>& all) const {
    const Touch* seen = nullptr;
    for (const Touch& other : all) {
      if (!other.writes) continue;
      if (!ordered(read, other))
        return fmt::format("{} and {} in no order", name(read.instance), name(other.instance));
      if (before_[read.instance][other.instance] &&
          (seen == nullptr || before_[other.instance][seen->instance]))
        seen = &other;
    }
    if (seen == nullptr) return read.needs_write ? name(read.instance) + " reads what nobody wrote" : "";
    return seen->tensor == read.tensor
               ? ""
               : fmt::format("{} reads what {} wrote", name(read.instance), name(seen->instance));
  }

  const ProgramView& program_;
  std::span<const KvGroup> groups_;
  const StepInput& input_;
  std::vector<Row> rows_;
  std::vector<Instance> instances_;             // by worker, in order
  std::vector<std::vector<uint32_t>> signals_;  // by counter: the instances that give them
  std::vector<Set> before_;                     // by instance: what is certain to come before it
  std::map<uint64_t, std::vector<Touch>> accesses_;
  std::map<uint64_t, uint32_t> made_;  // by tensor, row tile, column
};

}  // namespace plow::reference
