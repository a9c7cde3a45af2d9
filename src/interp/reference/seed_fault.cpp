#include "interp/reference/seed_fault.h"

#include "bundle/disassemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <random>

namespace plow::reference {
namespace {

constexpr FaultName kFaultNames[] = {
#define PLOW_FAULT(Name, text) {FaultKind::k##Name, #Name, text},
#include "interp/reference/faults.def"
};

class Seeder {
 public:
  Seeder(BundleTables& tables, uint64_t seed)
      : random_(seed),
        tables_(tables),
        index_(static_cast<uint32_t>(random_() % tables.programs.size())),
        p_(tables.programs[index_]) {}

  std::optional<SeededFault> run(FaultKind kind) {
    SeededFault fault;
    fault.program = index_;
    const ProgramTables before = p_;
    const std::optional<std::string> where = apply(kind, before);
    if (!where) return std::nullopt;
    fault.where = *where;
    if (kind == FaultKind::kClearWrongBank) fault.clear_distance = 2;
    if (kind == FaultKind::kClearCurrentBank) fault.clear_distance = 0;
    return fault;
  }

 private:
  using Where = std::optional<std::string>;

  Where apply(FaultKind kind, const ProgramTables& before);

  // A packet (its index) that the predicate takes, at random.
  std::optional<uint32_t> any_packet(const std::function<bool(uint32_t)>& fits) {
    std::vector<uint32_t> found;
    for (uint32_t i = 0; i < p_.packets.size(); ++i) {
      if (fits(i)) found.push_back(i);
    }
    if (found.empty()) return std::nullopt;
    return found[random_() % found.size()];
  }
  std::optional<uint32_t> any_tensor(const std::function<bool(const TensorEntry&)>& fits) {
    std::vector<uint32_t> found;
    for (uint32_t i = 0; i < p_.tensors.size(); ++i) {
      if (fits(p_.tensors[i])) found.push_back(i);
    }
    if (found.empty()) return std::nullopt;
    return found[random_() % found.size()];
  }

  Op op(uint32_t packet) const { return static_cast<Op>(p_.packets[packet].body); }
  bool computes(uint32_t packet) const { return !is_protocol(op(packet)); }
  uint32_t worker_of(uint32_t packet) const {
    uint32_t worker = 0;
    while (packet >= p_.workers[worker].first_packet + p_.workers[worker].n_packets) ++worker;
    return worker;
  }
  bool same_worker(uint32_t a, uint32_t b) const {
    return b < p_.packets.size() && worker_of(a) == worker_of(b);
  }

  std::vector<Wait> waits(uint32_t packet) const {
    const auto first = p_.waits.begin() + p_.packets[packet].wait_first;
    return {first, first + p_.packets[packet].n_waits};
  }
  std::vector<Signal> signals(uint32_t packet) const {
    const auto first = p_.signals.begin() + p_.packets[packet].signal_first;
    return {first, first + p_.packets[packet].n_signals};
  }
  // A new list at the end, so that no other packet's changes.
  void set_waits(uint32_t packet, const std::vector<Wait>& list) {
    p_.packets[packet].wait_first = static_cast<uint32_t>(p_.waits.size());
    p_.packets[packet].n_waits = static_cast<uint8_t>(list.size());
    p_.waits.insert(p_.waits.end(), list.begin(), list.end());
  }
  void set_signals(uint32_t packet, const std::vector<Signal>& list) {
    p_.packets[packet].signal_first = static_cast<uint32_t>(p_.signals.size());
    p_.packets[packet].n_signals = static_cast<uint8_t>(list.size());
    p_.signals.insert(p_.signals.end(), list.begin(), list.end());
  }

  // Changes one wait (one signal) that `fits` at random; the function may remove it by returning false.
  std::optional<uint32_t> change_wait(const std::function<bool(const Wait&)>& fits,
                                      const std::function<bool(Wait&)>& change);
  std::optional<uint32_t> change_signal(const std::function<bool(const Signal&)>& fits,
                                        const std::function<bool(Signal&)>& change);

  void erase_packet(uint32_t packet);
  void insert_packet(uint32_t worker, uint32_t at, const Packet& packet);

  std::optional<uint32_t> break_signals(FaultKind kind);
  std::optional<uint32_t> break_waits(FaultKind kind);
  std::optional<uint32_t> break_tensors(FaultKind kind);
  std::optional<uint32_t> break_lists(FaultKind kind);
  std::optional<uint32_t> break_tiles(FaultKind kind);
  std::optional<uint32_t> break_operands(FaultKind kind);
  std::optional<uint32_t> break_protocol(FaultKind kind);
  uint32_t other_counter(uint32_t counter) {
    return static_cast<uint32_t>((counter + 1 + random_() % std::max(1u, p_.entry.n_counters - 1)) %
                                 p_.entry.n_counters);
  }

  std::mt19937_64 random_;
  BundleTables& tables_;
  uint32_t index_;
  ProgramTables& p_;
};

std::optional<uint32_t> Seeder::change_wait(const std::function<bool(const Wait&)>& fits,
                                            const std::function<bool(Wait&)>& change) {
  const auto packet = any_packet([&](uint32_t i) { return std::ranges::any_of(waits(i), fits); });
  if (!packet) return std::nullopt;
  std::vector<Wait> list = waits(*packet);
  size_t at = random_() % list.size();
  while (!fits(list[at])) at = (at + 1) % list.size();
  if (!change(list[at])) list.erase(list.begin() + static_cast<ptrdiff_t>(at));
  set_waits(*packet, list);
  return packet;
}

std::optional<uint32_t> Seeder::change_signal(const std::function<bool(const Signal&)>& fits,
                                              const std::function<bool(Signal&)>& change) {
  const auto packet = any_packet([&](uint32_t i) { return std::ranges::any_of(signals(i), fits); });
  if (!packet) return std::nullopt;
  std::vector<Signal> list = signals(*packet);
  size_t at = random_() % list.size();
  while (!fits(list[at])) at = (at + 1) % list.size();
  if (!change(list[at])) list.erase(list.begin() + static_cast<ptrdiff_t>(at));
  set_signals(*packet, list);
  return packet;
}

void Seeder::erase_packet(uint32_t packet) {
  const uint32_t worker = worker_of(packet);
  const uint32_t in_list = packet - p_.workers[worker].first_packet;
  p_.packets.erase(p_.packets.begin() + packet);
  --p_.workers[worker].n_packets;
  for (uint32_t w = worker + 1; w < p_.workers.size(); ++w) --p_.workers[w].first_packet;
  WorkerEntry& entry = p_.workers[worker];
  for (StreamEntry& stream : std::span(p_.stream).subspan(entry.first_stream, entry.n_stream)) {
    if (stream.packet > in_list || stream.packet >= entry.n_packets) --stream.packet;
  }
}

void Seeder::insert_packet(uint32_t worker, uint32_t at, const Packet& packet) {
  WorkerEntry& entry = p_.workers[worker];
  p_.packets.insert(p_.packets.begin() + entry.first_packet + at, packet);
  ++entry.n_packets;
  for (uint32_t w = worker + 1; w < p_.workers.size(); ++w) ++p_.workers[w].first_packet;
  for (StreamEntry& stream : std::span(p_.stream).subspan(entry.first_stream, entry.n_stream)) {
    if (stream.packet >= at) ++stream.packet;
  }
}

std::optional<uint32_t> Seeder::break_signals(FaultKind kind) {
  const auto any = [](const Signal&) { return true; };
  const auto banded = [](const Signal& signal) { return signal.band == Band::kRow; };
  switch (kind) {
    case FaultKind::kSignalDropped:
      return change_signal(any, [](Signal&) { return false; });
    case FaultKind::kSignalOnWrongCounter:
      return change_signal([](const Signal& s) { return s.band == Band::kNone; },
                           [&](Signal& signal) {
                             signal.counter = other_counter(signal.counter);
                             return true;
                           });
    case FaultKind::kSignalBandDropped:
      return change_signal(banded, [](Signal& signal) {
        signal.band = Band::kNone;
        return true;
      });
    default:
      break;
  }
  Signal chosen{};
  const bool doubled = kind == FaultKind::kSignalDoubled;
  const auto packet = any_packet(
      [&](uint32_t i) { return !signals(i).empty() && (doubled || (i > 0 && same_worker(i - 1, i))); });
  if (!packet) return packet;
  std::vector<Signal> list = signals(*packet);
  chosen = list[random_() % list.size()];
  if (doubled) {
    list.push_back(chosen);
    set_signals(*packet, list);
    return packet;
  }
  std::vector<Signal> earlier = signals(*packet - 1);
  earlier.push_back(chosen);
  set_signals(*packet - 1, earlier);
  list.erase(std::find_if(list.begin(), list.end(), [&](const Signal& s) {
    return s.counter == chosen.counter && s.band == chosen.band;
  }));
  set_signals(*packet, list);
  return packet;
}

std::optional<uint32_t> Seeder::break_waits(FaultKind kind) {
  const auto any = [](const Wait&) { return true; };
  switch (kind) {
    case FaultKind::kThresholdUp:
      return change_wait(any, [](Wait& wait) { return ++wait.constant, true; });
    case FaultKind::kThresholdDown:
      return change_wait([](const Wait& wait) { return wait.constant > 0; },
                         [](Wait& wait) { return --wait.constant, true; });
    case FaultKind::kCoefficientUp:
      return change_wait(any, [](Wait& wait) { return ++wait.per_row_tile, true; });
    case FaultKind::kCoefficientDown:
      return change_wait([](const Wait& wait) { return wait.per_row_tile > 0; },
                         [](Wait& wait) { return --wait.per_row_tile, true; });
    case FaultKind::kWaitRemoved:
      return change_wait(any, [](Wait&) { return false; });
    case FaultKind::kWaitOnWrongCounter:
      return change_wait([](const Wait& wait) { return wait.band == Band::kNone; },
                         [&](Wait& wait) { return wait.counter = other_counter(wait.counter), true; });
    case FaultKind::kWaitBandDropped:
      return change_wait([](const Wait& wait) { return wait.band == Band::kRow; },
                         [](Wait& wait) { return wait.band = Band::kNone, true; });
    default:
      break;
  }
  // kWaitLate
  const auto packet = any_packet([&](uint32_t i) { return !waits(i).empty() && same_worker(i, i + 1); });
  if (!packet) return packet;
  std::vector<Wait> list = waits(*packet), later = waits(*packet + 1);
  later.push_back(list.back());
  list.pop_back();
  set_waits(*packet, list);
  set_waits(*packet + 1, later);
  return packet;
}

std::optional<uint32_t> Seeder::break_tensors(FaultKind kind) {
  const auto move_onto_another = [&](const std::function<bool(const TensorEntry&, const TensorEntry&)>& fits)
      -> std::optional<uint32_t> {
    std::vector<std::pair<uint32_t, uint32_t>> pairs;
    for (uint32_t a = 0; a < p_.tensors.size(); ++a) {
      for (uint32_t b = 0; b < p_.tensors.size(); ++b) {
        if (p_.tensors[a].offset != p_.tensors[b].offset && fits(p_.tensors[a], p_.tensors[b]))
          pairs.push_back({a, b});
      }
    }
    if (pairs.empty()) return std::nullopt;
    const auto [a, b] = pairs[random_() % pairs.size()];
    p_.tensors[a].offset = p_.tensors[b].offset;
    return a;
  };
  switch (kind) {
    case FaultKind::kBuffersOverlapped:
      return move_onto_another([&](const TensorEntry& a, const TensorEntry& b) {
        return a.space == Space::kArena && b.space == Space::kArena &&
               b.offset + a.bytes <= p_.entry.arena_bytes;
      });
    case FaultKind::kCachesOverlapped:
      return move_onto_another([](const TensorEntry& a, const TensorEntry& b) {
        return a.space == Space::kKv && b.space == Space::kKv && a.kv_group == b.kv_group &&
               a.bytes == b.bytes;
      });
    case FaultKind::kWeightWrong:
      return move_onto_another([](const TensorEntry& a, const TensorEntry& b) {
        return a.space == Space::kTape && b.space == Space::kTape && a.rows == b.rows && a.cols == b.cols &&
               a.dtype == b.dtype;
      });
    default:
      break;
  }
  const bool row_stride = kind == FaultKind::kTensorRowStride;
  const auto tensor = any_tensor([&](const TensorEntry& t) {
    return row_stride ? t.space == Space::kArena && t.rows > 1
                      : t.space == Space::kArena || t.space == Space::kTape;
  });
  if (!tensor) return tensor;
  TensorEntry& entry = p_.tensors[*tensor];
  if (row_stride) {
    entry.row_stride = entry.row_stride / 8 * 4;
  } else {
    entry.offset =
        (entry.space == Space::kArena ? p_.entry.arena_bytes : tables_.header.tape_bytes) - entry.bytes + 64;
  }
  return tensor;
}

std::optional<uint32_t> Seeder::break_lists(FaultKind kind) {
  const auto packet = any_packet([&](uint32_t i) {
    return computes(i) &&
           (kind != FaultKind::kPacketsSwapped || (same_worker(i, i + 1) && computes(i + 1))) &&
           (kind != FaultKind::kPacketMoved || p_.workers.size() > 1);
  });
  if (!packet) return packet;
  const Packet copy = p_.packets[*packet];
  const uint32_t worker = worker_of(*packet);
  switch (kind) {
    case FaultKind::kPacketTwice:
      insert_packet(worker, *packet - p_.workers[worker].first_packet, copy);
      break;
    case FaultKind::kPacketNever:
      erase_packet(*packet);
      break;
    case FaultKind::kPacketsSwapped:
      std::swap(p_.packets[*packet], p_.packets[*packet + 1]);
      break;
    default: {
      erase_packet(*packet);
      const auto other =
          static_cast<uint32_t>((worker + 1 + random_() % (p_.workers.size() - 1)) % p_.workers.size());
      // Anywhere but behind the worker's `leave`.
      insert_packet(other, static_cast<uint32_t>(random_() % (p_.workers[other].n_packets - 1)), copy);
    }
  }
  return packet;
}

std::optional<uint32_t> Seeder::break_tiles(FaultKind kind) {
  const auto columns = [&](const Packet& packet) {
    return p_.tensors[packet.operand[tile_rule(static_cast<Op>(packet.body))->n_operands - 1]].cols;
  };
  const auto ends_inside = [&](const Packet& packet) {
    return (packet.col_first + packet.col_count) * packet.tile_cols < columns(packet) &&
           packet.col_stride == 1;
  };
  const auto packet = any_packet([&](uint32_t i) {
    if (!computes(i)) return false;
    const Packet& p = p_.packets[i];
    if (kind == FaultKind::kTileTwice) return ends_inside(p);
    if (kind == FaultKind::kTileNever) return p.col_count > 1;
    return kind != FaultKind::kTileCols || p.tile_cols < columns(p);
  });
  if (!packet) return packet;
  Packet& p = p_.packets[*packet];
  switch (kind) {
    case FaultKind::kTileTwice:
      ++p.col_count;
      break;
    case FaultKind::kTileNever:
      --p.col_count;
      break;
    case FaultKind::kRowFirst:
      ++p.row_first;
      break;
    case FaultKind::kRowStride:
      p.row_stride = static_cast<uint16_t>(p.row_stride + 1);
      break;
    default:
      p.tile_cols = p.tile_cols % 32 == 0 && random_() % 2 == 0 ? p.tile_cols / 2 : p.tile_cols * 2;
  }
  return packet;
}

std::optional<uint32_t> Seeder::break_operands(FaultKind kind) {
  if (kind == FaultKind::kImmediateChanged) {
    const auto packet =
        any_packet([&](uint32_t i) { return computes(i) && p_.packets[i].immediate[0] != 0; });
    if (!packet) return packet;
    uint32_t& word = p_.packets[*packet].immediate[0];
    // Heads and groups are small numbers; what looks like a float of ordinary size is one.
    word = word < (1u << 20) ? word * 2 : std::bit_cast<uint32_t>(std::bit_cast<float>(word) * 1.5f);
    return packet;
  }
  const auto alike = [&](uint16_t a, uint16_t b) {
    const TensorEntry &x = p_.tensors[a], &y = p_.tensors[b];
    return a != b && x.space == y.space && x.row_kind == y.row_kind && x.rows == y.rows && x.cols == y.cols &&
           x.dtype == y.dtype;
  };
  const bool swap = kind == FaultKind::kOperandsSwapped;
  // The last two inputs that could stand for each other, the later one first; of a sum they may.
  const auto swappable = [&](uint32_t i) -> std::optional<std::pair<uint32_t, uint32_t>> {
    if (op(i) == Op::kAdd) return std::nullopt;
    for (uint32_t b = tile_rule(op(i))->n_operands - 1; b-- > 1;) {
      for (uint32_t a = b; a-- > 0;) {
        if (alike(p_.packets[i].operand[a], p_.packets[i].operand[b])) return std::pair(a, b);
      }
    }
    return std::nullopt;
  };
  std::vector<uint16_t> others;
  const auto packet = any_packet([&](uint32_t i) {
    if (!computes(i)) return false;
    const auto& operand = p_.packets[i].operand;
    if (swap) return swappable(i).has_value();
    for (uint32_t t = 0; t < p_.tensors.size(); ++t) {
      if (alike(operand[0], static_cast<uint16_t>(t))) return true;
    }
    return false;
  });
  if (!packet) return packet;
  auto& operand = p_.packets[*packet].operand;
  if (swap) {
    const auto [a, b] = *swappable(*packet);
    std::swap(operand[a], operand[b]);
    return packet;
  }
  for (uint32_t t = 0; t < p_.tensors.size(); ++t) {
    if (alike(operand[0], static_cast<uint16_t>(t))) others.push_back(static_cast<uint16_t>(t));
  }
  operand[0] = others[random_() % others.size()];
  return packet;
}

std::optional<uint32_t> Seeder::break_protocol(FaultKind kind) {
  const auto of = [&](Op wanted) { return any_packet([&, wanted](uint32_t i) { return op(i) == wanted; }); };
  std::optional<uint32_t> packet;
  switch (kind) {
    case FaultKind::kLeaveMissing:
      packet = of(Op::kLeave);
      break;
    case FaultKind::kAdvanceEarly:
    case FaultKind::kAdvanceMissing:
      packet = of(Op::kAdvance);
      break;
    default:
      packet = of(Op::kClearBank);
  }
  if (!packet) return packet;
  if (kind == FaultKind::kAdvanceEarly) set_waits(*packet, {});
  const bool gone = kind == FaultKind::kLeaveMissing || kind == FaultKind::kAdvanceMissing ||
                    kind == FaultKind::kClearMissing;
  if (gone) erase_packet(*packet);
  return packet;
}

Seeder::Where Seeder::apply(FaultKind kind, const ProgramTables& before) {
  const ProgramView view{&before.entry,  before.workers, before.packets, before.waits,
                         before.signals, before.stream,  before.tensors};
  const auto packet = [&](std::optional<uint32_t> index) -> Where {
    return index ? Where(format_packet(view, *index)) : std::nullopt;
  };
  const auto tensor = [&](std::optional<uint32_t> index) -> Where {
    return index ? Where(format_operand(view, static_cast<uint16_t>(*index))) : std::nullopt;
  };
  if (kind <= FaultKind::kSignalBandDropped) return packet(break_signals(kind));
  if (kind <= FaultKind::kWaitBandDropped) return packet(break_waits(kind));
  if (kind <= FaultKind::kTensorRowStride) return tensor(break_tensors(kind));
  if (kind <= FaultKind::kTileNever) return packet(break_tiles(kind));
  if (kind <= FaultKind::kPacketMoved) return packet(break_lists(kind));
  if (kind <= FaultKind::kTileCols) return packet(break_tiles(kind));
  if (kind <= FaultKind::kImmediateChanged) return packet(break_operands(kind));
  return packet(break_protocol(kind));
}

}  // namespace

std::span<const FaultName> fault_names() { return kFaultNames; }

std::optional<SeededFault> seed_fault(BundleTables& tables, FaultKind kind, uint64_t seed) {
  return Seeder(tables, seed).run(kind);
}

}  // namespace plow::reference
