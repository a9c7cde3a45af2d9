#include "tune/calibrate.h"

#include "tune/packet_rig.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <functional>

namespace plow {

namespace {

using Clock = std::chrono::steady_clock;

// Steps of one experiment at most, and at least: the best of three is a measurement, if a poor one.
constexpr uint32_t kMostSteps = 1000, kLeastSteps = 3;
// All experiments are gone through so many times, and the best step of all counts: what shares the machine,
// or its host, may slow everything for seconds.
constexpr uint32_t kRounds = 4;

struct Timing {
  Nanoseconds best;
  double spread = 0;
  uint32_t count = 0;
};

// What a worker does over and over in one step.
using AddWork = std::function<void(PacketRig& rig, uint32_t worker)>;

// The prices of a product: nanoseconds of a weight, by rows that share a pass, from near and from far.
struct ProductTimes {
  std::array<Timing, 6> near;  // at kRows
};
constexpr std::array<uint32_t, 6> kRows = {1, 2, 4, 8, 16, 64};

uint32_t f32_bits(float value) { return std::bit_cast<uint32_t>(value); }

class Calibrator {
 public:
  Calibrator(const CalibrateOptions& options, IsaLevel level, TuneSink& sink)
      : options_(options), sink_(sink) {
    result_.level = level;
  }

  Result<Calibration> run() {
    for (uint32_t round = 0; round < kRounds; ++round) {
      experiment_ = 0;
      PLOW_TRY_STATUS(protocol());
      PLOW_TRY_STATUS(products());
      PLOW_TRY_STATUS(transfer());
      PLOW_TRY_STATUS(attention());
      PLOW_TRY_STATUS(row_bodies());
    }
    return result_;
  }

 private:
  static constexpr uint32_t kExperiments = 61;  // counted by a run; only the bar depends on it

  void set(Figure figure, double value, const Timing& from) {
    result_.figures[static_cast<size_t>(figure)] = {value, from.spread, from.count};
  }
  double get(Figure figure) const { return result_.figures[static_cast<size_t>(figure)].value; }

  // The best step of a rig that is complete, of this round and those before.
  Result<Timing> measure(PacketRig& rig, std::string_view what) {
    sink_.progress(what, done_++, kExperiments * kRounds);
    if (sink_.cancelled()) return input_error("the calibration was interrupted; nothing was stored");
    PLOW_TRY_STATUS(rig.start(result_.level));
    PLOW_TRY(const Nanoseconds warm, rig.run());
    (void)warm;
    const auto end =
        Clock::now() + std::chrono::duration<double>(options_.seconds / (kExperiments * kRounds));
    std::vector<double> times;
    while (times.size() < kLeastSteps || (times.size() < kMostSteps && Clock::now() < end)) {
      PLOW_TRY(const Nanoseconds time, rig.run());
      times.push_back(time.value);
    }
    std::sort(times.begin(), times.end());
    const double best = times.front();
    const Timing timing{Nanoseconds(best), (times[times.size() / 2] - best) / best,
                        static_cast<uint32_t>(times.size())};
    if (experiment_ == best_.size()) best_.push_back(timing);
    Timing& known = best_[experiment_++];
    if (timing.best < known.best) known = timing;
    return known;
  }

  // Nanoseconds of one of the packets that the first `n_workers` workers each run in a step, without the
  // packet's own cost: `add` adds one, `calls` times, and each is repeated until there are `repeats` of it.
  Result<Timing> packet_time(RigSize size, uint32_t n_workers, uint32_t calls, uint32_t repeats,
                             std::string_view what, const AddWork& add) {
    size.n_workers = options_.n_workers;
    PLOW_TRY(const auto rig, PacketRig::create(size));
    for (uint32_t w = 0; w < n_workers; ++w) {
      for (uint32_t i = 0; i < calls; ++i) {
        add(*rig, w);
        for (uint32_t r = 1; r < repeats; ++r) rig->repeat(w);
      }
    }
    PLOW_TRY(Timing timing, measure(*rig, what));
    const double packet = (timing.best.value - get(Figure::kStep)) / (calls * repeats) - get(Figure::kPacket);
    timing.best = Nanoseconds(std::max(packet, 0.1));
    return timing;
  }

  Status protocol() {
    RigSize size;
    size.n_workers = options_.n_workers;
    PLOW_TRY(const auto empty, PacketRig::create(size));
    PLOW_TRY(const Timing step, measure(*empty, "an empty step"));
    set(Figure::kStep, step.best.value, step);

    constexpr uint32_t kTurns = 100;
    constexpr uint32_t kPackets = 2000;
    PLOW_TRY(const auto alone, PacketRig::create(size));
    const uint32_t own = alone->add_counter();
    for (uint32_t i = 0; i < kPackets; ++i) {
      alone->add_packet(0, Op::kLeave, {}, 0);
      alone->wait(0, own, i);
      alone->signal(0, own);
    }
    PLOW_TRY(const Timing packets, measure(*alone, "packets without work"));
    set(Figure::kPacket, (packets.best - step.best).value / kPackets, packets);

    if (options_.n_workers == 1) {  // nothing hops; the figure is never used
      set(Figure::kHop, get(Figure::kPacket), packets);
      return {};
    }
    PLOW_TRY(const auto game, PacketRig::create(size));
    ping_pong(*game, kTurns, [&](uint32_t worker) { game->add_packet(worker, Op::kLeave, {}, 0); });
    PLOW_TRY(const Timing hops, measure(*game, "hops between workers"));
    set(Figure::kHop, (hops.best - step.best).value / (2 * kTurns) - get(Figure::kPacket), hops);
    return {};
  }

  // Worker 0 and the last one take turns.
  void ping_pong(PacketRig& rig, uint32_t turns, const std::function<void(uint32_t)>& add) {
    const uint32_t ping = rig.add_counter(), pong = rig.add_counter(), other = options_.n_workers - 1;
    for (uint32_t i = 0; i < turns; ++i) {
      add(0);
      rig.wait(0, pong, i);
      rig.signal(0, ping);
      add(other);
      rig.wait(other, ping, i + 1);
      rig.signal(other, pong);
    }
  }

  // A row of 4,096 columns goes to and fro, and on one worker stays where it is.
  Status transfer() {
    constexpr uint32_t kColumns = 4096, kTurns = 20;
    if (options_.n_workers == 1) {
      set(Figure::kTransfer, get(Figure::kReadMiddleAlone), {Nanoseconds(), 0, 1});
      return {};
    }
    RigSize size;
    size.n_workers = options_.n_workers;
    const auto add_copy = [&](PacketRig& rig, uint32_t worker, uint16_t from, uint16_t to) {
      rig.add_packet(worker, Op::kScale, {from, to}, kColumns).immediate[0] = f32_bits(1);
    };
    PLOW_TRY(const auto game, PacketRig::create(size));
    const uint16_t a = game->add_arena(1, kColumns), b = game->add_arena(1, kColumns);
    ping_pong(*game, kTurns,
              [&](uint32_t worker) { add_copy(*game, worker, worker == 0 ? b : a, worker == 0 ? a : b); });
    PLOW_TRY(const Timing apart, measure(*game, "activations of another worker"));
    PLOW_TRY(const auto alone, PacketRig::create(size));
    const uint16_t c = alone->add_arena(1, kColumns), d = alone->add_arena(1, kColumns);
    for (uint32_t i = 0; i < kTurns; ++i) add_copy(*alone, 0, c, d), add_copy(*alone, 0, d, c);
    PLOW_TRY(const Timing together, measure(*alone, "activations of the same worker"));
    const double extra = (apart.best - together.best).value / (2 * kTurns) - get(Figure::kHop);
    set(Figure::kTransfer, kColumns * sizeof(float) / std::max(extra, 1.0), apart);
    return {};
  }

  // Nanoseconds of a weight when `rows` rows pass matrices of `matrix_bytes` that lie in `working_set` a
  // worker.
  Result<Timing> weight_time(DType dtype, uint32_t rows, uint64_t working_set, uint32_t n_workers,
                             std::string_view what) {
    constexpr uint32_t kDepth = 1024;
    const uint64_t row_bytes = uint64_t{kDepth} * dtype_bytes(dtype);
    const auto columns = static_cast<uint32_t>(std::min<uint64_t>(working_set, 4 << 20) / row_bytes);
    const auto matrices = static_cast<uint32_t>(working_set / (columns * row_bytes));
    // Steps of at least two million products, so that the doorbell does not count.
    const uint32_t times =
        std::max<uint32_t>(matrices, (2u << 20) / (columns * kDepth * rows) + 1) / matrices * matrices;
    RigSize size;
    size.rows = rows;
    size.tape_bytes = (working_set + 8192) * options_.n_workers;
    std::vector<std::vector<uint16_t>> weights(options_.n_workers);
    std::vector<uint16_t> x(options_.n_workers), y(options_.n_workers);
    std::vector<uint32_t> next(options_.n_workers, 0);
    const AddWork add = [&](PacketRig& rig, uint32_t w) {
      if (weights[w].empty()) {
        x[w] = rig.add_arena(rows, kDepth);
        y[w] = rig.add_arena(rows, columns);
        for (uint32_t m = 0; m < matrices; ++m)
          weights[w].push_back(rig.add_tape(dtype, Layout::kRows16Pairs, columns, kDepth));
      }
      rig.add_packet(w, Op::kLinear, {x[w], weights[w][next[w]++ % matrices], y[w]}, columns);
    };
    PLOW_TRY(Timing timing, packet_time(size, n_workers, times, 1, what, add));
    timing.best = timing.best * (1.0 / (double{1} * columns * kDepth));
    return timing;
  }

  Status products() {
    // Far: eight times the 32 MiB that the processors of a cache of that size share, which otherwise serves part of it
    // (two workers with 32 MiB each were told 35 GB/s where a model's weights come at 27).
    constexpr uint64_t kNear = 128 << 10, kMiddle = 4 << 20, kFar = 128 << 20;
    const uint32_t all = options_.n_workers;
    std::array<Timing, 6> narrow, wide;
    for (size_t i = 0; i < kRows.size(); ++i) {
      PLOW_TRY(narrow[i], weight_time(DType::kBf16, kRows[i], kNear, all,
                                      fmt::format("bf16 products, {} rows", kRows[i])));
      PLOW_TRY(wide[i], weight_time(DType::kF32, kRows[i], kNear, all,
                                    fmt::format("f32 products, {} rows", kRows[i])));
      set(static_cast<Figure>(static_cast<size_t>(Figure::kMatrixBf16At1) + i),
          2 * kRows[i] / narrow[i].best.value, narrow[i]);
      set(static_cast<Figure>(static_cast<size_t>(Figure::kMatrixF32At1) + i),
          2 * kRows[i] / wide[i].best.value, wide[i]);
    }
    PLOW_TRY(const Timing far_all,
             weight_time(DType::kBf16, 1, kFar, all, "weights from memory, all workers"));
    PLOW_TRY(const Timing far_four, weight_time(DType::kBf16, 4, kFar, all, "weights from memory, 4 rows"));
    PLOW_TRY(const Timing far_alone,
             weight_time(DType::kBf16, 1, kFar, 1, "weights from memory, one worker"));
    PLOW_TRY(const Timing middle_all,
             weight_time(DType::kBf16, 1, kMiddle, all, "weights of 4 MiB, all workers"));
    PLOW_TRY(const Timing middle_alone,
             weight_time(DType::kBf16, 1, kMiddle, 1, "weights of 4 MiB, one worker"));
    PLOW_TRY(const Timing near_alone,
             weight_time(DType::kF32, 1, kNear, 1, "weights of 128 KiB, one worker"));

    const double one = narrow[0].best.value, four = narrow[2].best.value;
    const double overlap = find_overlap(far_all.best.value, one, far_four.best.value, four);
    set(Figure::kOverlap, overlap, far_four);
    const auto set_rate = [&](Figure figure, const Timing& timing) {
      set(figure, sizeof(uint16_t) / read_time(timing.best.value, one, overlap), timing);
    };
    set_rate(Figure::kReadFarAll, far_all);
    set_rate(Figure::kReadFarAlone, far_alone);
    set_rate(Figure::kReadMiddleAll, middle_all);
    set_rate(Figure::kReadMiddleAlone, middle_alone);
    // Of f32 weights the most bytes come in a nanosecond: a lower bound of what the near cache gives.
    set(Figure::kReadSmallAll, sizeof(float) / wide[0].best.value, wide[0]);
    set(Figure::kReadSmallAlone, sizeof(float) / near_alone.best.value, near_alone);
    return {};
  }

  // The time of reading in time = max(read, product) + overlap * min(read, product).
  static double read_time(double time, double product, double overlap) {
    if (time >= product * (1 + overlap)) return time - overlap * product;
    return overlap > 0 ? std::clamp((time - product) / overlap, 0.2 * product, product) : product;
  }

  // The overlap with which the times of one row explain those of four. By halving: it grows with the overlap.
  static double find_overlap(double far_one, double near_one, double far_four, double near_four) {
    double low = 0, high = 1;
    for (int i = 0; i < 40; ++i) {
      const double middle = (low + high) / 2, read = read_time(far_one, near_one, middle);
      const double told = std::max(read, near_four) + middle * std::min(read, near_four);
      (told < far_four ? low : high) = middle;
    }
    return low;
  }

  // Nanoseconds for a pair of a query and a position.
  Result<Timing> pair_time(uint32_t rows, uint32_t group, uint32_t head_dim, std::string_view what) {
    constexpr uint32_t kPosition = 512;
    RigSize size;
    size.rows = rows;
    size.first_position = kPosition;
    const AddWork add = [&](PacketRig& rig, uint32_t w) {
      const uint16_t q = rig.add_arena(rows, group * head_dim),
                     cache = rig.add_cache(DType::kBf16, 1, head_dim);
      Packet& packet = rig.add_packet(w, Op::kAttention, {q, cache, rig.add_arena(rows, group * head_dim)},
                                      group * head_dim);
      packet.immediate[0] = head_dim;
      packet.immediate[2] = f32_bits(0.125f);
    };
    PLOW_TRY(Timing timing, packet_time(size, options_.n_workers, 1, rows == 1 ? 16 : 1, what, add));
    // As cost.cpp counts positions.
    const double positions = kPosition + (rows + 1) / 2.0 + (rows > 1 ? 32 : 0);
    timing.best = timing.best * (1.0 / (positions * rows * group));
    return timing;
  }

  Status attention() {
    struct Point {
      uint32_t rows, group;
      Figure pair, column;
    };
    for (const Point& point : {Point{1, 1, Figure::kPairAt1, Figure::kPairColumnAt1},
                               Point{1, 6, Figure::kPairAt6, Figure::kPairColumnAt6},
                               Point{64, 1, Figure::kPairAt64, Figure::kPairColumnAt64}}) {
      const std::string what = fmt::format("attention, {} queries", point.rows * point.group);
      PLOW_TRY(const Timing narrow, pair_time(point.rows, point.group, 64, what));
      PLOW_TRY(const Timing wide, pair_time(point.rows, point.group, 256, what));
      set_line(point.pair, point.column, 64, narrow, 256, wide);
    }
    return {};
  }

  // Fixed and growing part of a time that was taken at two sizes. Neither is allowed to be nothing.
  void set_line(Figure fixed, Figure growing, double small, const Timing& at_small, double large,
                const Timing& at_large) {
    const double slope =
        std::max((at_large.best - at_small.best).value / (large - small), 0.01 * at_small.best.value / small);
    set(growing, slope, at_large);
    set(fixed, std::max(at_small.best.value - slope * small, 0.1), at_small);
  }

  // One row body at two widths. `make` adds a packet over so many columns.
  using MakeBody = std::function<void(PacketRig& rig, uint32_t worker, uint32_t columns)>;
  Status row_body(Figure run, Figure element, std::string_view what, double elements_a_column, bool sampled,
                  uint32_t small, uint32_t large, const MakeBody& make) {
    constexpr uint32_t kBodyRows = 16;
    RigSize size;
    size.rows = kBodyRows;
    size.samples = sampled ? kBodyRows : 0;
    size.tape_bytes = 8 << 20;
    std::array<Timing, 2> timings;
    const std::array<uint32_t, 2> widths = {small, large};
    for (size_t i = 0; i < 2; ++i) {
      const AddWork add = [&](PacketRig& rig, uint32_t w) { make(rig, w, widths[i]); };
      // Steps of some 200,000 elements: a tenth of a millisecond.
      const uint32_t repeats = std::max(1u, 200'000 / (kBodyRows * widths[i]));
      PLOW_TRY(timings[i], packet_time(size, options_.n_workers, 1, repeats, what, add));
      timings[i].best = timings[i].best * (1.0 / kBodyRows);
    }
    set_line(run, element, small * elements_a_column, timings[0], large * elements_a_column, timings[1]);
    return {};
  }

  Status row_bodies() {
    constexpr uint32_t kSmall = 64, kLarge = 1024, kRows16 = 16;
    const auto unary = [&](Op op, auto... immediates) -> MakeBody {
      return [=](PacketRig& rig, uint32_t w, uint32_t columns) {
        const uint16_t x = rig.add_arena(kRows16, columns), y = rig.add_arena(kRows16, columns);
        Packet& packet = rig.add_packet(w, op, {x, y}, columns);
        uint32_t i = 0;
        ((packet.immediate[i++] = immediates), ...);
      };
    };
    const auto glu = [&](uint32_t activation) -> MakeBody {
      return [=](PacketRig& rig, uint32_t w, uint32_t columns) {
        const uint16_t gate = rig.add_arena(kRows16, columns), up = rig.add_arena(kRows16, columns);
        rig.add_packet(w, Op::kGlu, {gate, up, rig.add_arena(kRows16, columns)}, columns).immediate[0] =
            activation;
      };
    };
    PLOW_TRY_STATUS(row_body(Figure::kNormRun, Figure::kNormElement, "rms_norm", 1, false, kSmall, kLarge,
                             [&](PacketRig& rig, uint32_t w, uint32_t columns) {
                               const uint16_t x = rig.add_arena(kRows16, columns);
                               const uint16_t gain =
                                   rig.add_tape(DType::kBf16, Layout::kRowMajor, 1, columns);
                               Packet& packet = rig.add_packet(
                                   w, Op::kRmsNorm, {x, gain, rig.add_arena(kRows16, columns)}, columns);
                               packet.immediate[0] = f32_bits(1e-5f);
                               packet.immediate[2] = columns;
                             }));
    // Rope: a run is a head.
    PLOW_TRY_STATUS(row_body(
        Figure::kRotateRun, Figure::kRotateElement, "rope", 1, false, kSmall, 256,
        [&](PacketRig& rig, uint32_t w, uint32_t columns) {
          const uint16_t x = rig.add_arena(kRows16, columns), angles = rig.add_arena(kRows16, columns);
          rig.add_packet(w, Op::kRope, {x, angles, rig.add_arena(kRows16, columns)}, columns).immediate[0] =
              columns;
        }));
    PLOW_TRY_STATUS(
        row_body(Figure::kAnglesRun, Figure::kAnglesElement, "rope_table", 1, false, kSmall, 256,
                 [&](PacketRig& rig, uint32_t w, uint32_t columns) {
                   const uint16_t frequencies = rig.add_tape(DType::kF64, Layout::kRowMajor, 1, columns / 2);
                   const uint16_t positions = rig.add_step(StepColumn::kPositions);
                   rig.add_packet(w, Op::kRopeTable,
                                  {frequencies, positions, rig.add_arena(kRows16, columns)}, columns)
                       .immediate[0] = f32_bits(1);
                 }));
    PLOW_TRY_STATUS(
        row_body(Figure::kStoreRun, Figure::kStoreElement, "kv_append", 2, false, kSmall, kLarge,
                 [&](PacketRig& rig, uint32_t w, uint32_t columns) {
                   const uint16_t k = rig.add_arena(kRows16, columns), v = rig.add_arena(kRows16, columns);
                   const uint16_t cache = rig.add_cache(DType::kBf16, columns / 64, 64);
                   rig.add_packet(w, Op::kKvAppend, {k, v, cache, cache}, columns).immediate[0] = 64;
                 }));
    PLOW_TRY_STATUS(
        row_body(Figure::kSiluRun, Figure::kSiluElement, "silu", 1, false, kSmall, kLarge, glu(0)));
    PLOW_TRY_STATUS(
        row_body(Figure::kGeluRun, Figure::kGeluElement, "gelu", 1, false, kSmall, kLarge, glu(1)));
    PLOW_TRY_STATUS(row_body(Figure::kSumRun, Figure::kSumElement, "add", 1, false, kSmall, kLarge,
                             [&](PacketRig& rig, uint32_t w, uint32_t columns) {
                               const uint16_t x = rig.add_arena(kRows16, columns),
                                              y = rig.add_arena(kRows16, columns);
                               rig.add_packet(w, Op::kAdd, {x, y, rig.add_arena(kRows16, columns)}, columns);
                             }));
    PLOW_TRY_STATUS(row_body(Figure::kCapRun, Figure::kCapElement, "soft_cap", 1, false, kSmall, kLarge,
                             unary(Op::kSoftCap, f32_bits(30))));
    PLOW_TRY_STATUS(
        row_body(Figure::kCopyRun, Figure::kCopyElement, "embed", 1, false, kSmall, kLarge,
                 [&](PacketRig& rig, uint32_t w, uint32_t columns) {
                   const uint16_t table = rig.add_tape(DType::kBf16, Layout::kRowMajor, 1024, columns),
                                  ids = rig.add_step(StepColumn::kTokenIds);
                   rig.add_packet(w, Op::kEmbed, {table, ids, rig.add_arena(kRows16, columns)}, columns);
                 }));
    return row_body(Figure::kPickRun, Figure::kPickElement, "sample", 1, true, 1024, 8192,
                    [&](PacketRig& rig, uint32_t w, uint32_t columns) {
                      const uint16_t logits = rig.add_arena(kRows16, columns);
                      rig.add_packet(w, Op::kSample, {logits, rig.add_step(StepColumn::kSampled)}, 1);
                    });
  }

  const CalibrateOptions& options_;
  TuneSink& sink_;
  Calibration result_;
  uint64_t done_ = 0;
  std::vector<Timing> best_;  // by experiment, in the order of a round
  size_t experiment_ = 0;
};

}  // namespace

Part Calibration::part(std::string name, uint32_t n_workers) const {
  Part part;
  part.name = std::move(name);
  part.n_workers = n_workers;
  for (size_t i = 0; i < kFigures; ++i) part.figures[i] = figures[i].value;
  return part;
}

Result<Calibration> calibrate(const CalibrateOptions& options, TuneSink& sink) {
  PLOW_TRY(const IsaLevel level, choose_isa_level(options.level));
  return Calibrator(options, level, sink).run();
}

}  // namespace plow
