#include "runtime/tiny_model.h"

#include "base/digest.h"
#include "isa/x86_64/interpreter.h"

#include <cmath>
#include <map>

namespace plow {
namespace {

using Vector = std::vector<double>;

// bf16 so that the tape holds the values exactly.
Vector weights(size_t n, uint32_t seed, double scale) {
  Vector values = random_values(n, seed, scale);
  for (double& v : values) v = rounded(DType::kBf16, v);
  return values;
}

Vector product(const Vector& w, const Vector& x) {
  Vector out(w.size() / x.size());
  for (size_t i = 0; i < out.size(); ++i) {
    for (size_t j = 0; j < x.size(); ++j) out[i] += w[i * x.size() + j] * x[j];
  }
  return out;
}

Vector normalised(const Vector& x, const Vector& gain) {
  double sum = 0;
  for (double v : x) sum += v * v;
  Vector out(x.size());
  const double factor =
      1 / std::sqrt(sum / static_cast<double>(x.size()) + static_cast<double>(TinyModel::kEps));
  for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] * factor * gain[i];
  return out;
}

Vector rotated(Vector x, const Vector& frequencies, uint32_t position) {
  const size_t half = TinyModel::kHeadDim / 2;
  for (size_t head = 0; head < x.size(); head += TinyModel::kHeadDim) {
    for (size_t j = 0; j < half; ++j) {
      const double c = std::cos(position * frequencies[j]), s = std::sin(position * frequencies[j]);
      const double a = x[head + j], b = x[head + half + j];
      x[head + j] = a * c - b * s;
      x[head + half + j] = b * c + a * s;
    }
  }
  return x;
}

Vector attended(const Vector& q, const std::vector<Vector>& keys, const std::vector<Vector>& values,
                uint32_t window) {
  constexpr size_t kDim = TinyModel::kHeadDim;
  Vector out(q.size());
  const size_t n = keys.size(), first = window != 0 && n > window ? n - window : 0;
  for (size_t head = 0; head < TinyModel::kHeads; ++head) {
    const size_t kv = head / (TinyModel::kHeads / TinyModel::kKvHeads) * kDim;
    double sum = 0;
    for (size_t j = first; j < n; ++j) {
      double score = 0;
      for (size_t d = 0; d < kDim; ++d) score += q[head * kDim + d] * keys[j][kv + d];
      const double weight = std::exp(score * static_cast<double>(TinyModel::kScale));
      sum += weight;
      for (size_t d = 0; d < kDim; ++d) out[head * kDim + d] += weight * values[j][kv + d];
    }
    for (size_t d = 0; d < kDim; ++d) out[head * kDim + d] /= sum;
  }
  return out;
}

void add_to(Vector& x, const Vector& y) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

}  // namespace

TinyModel::TinyModel() {
  embedding = weights(size_t{kVocab} * kHidden, 1, 1);
  for (uint32_t j = 0; j < kHeadDim / 2; ++j) frequencies.push_back(std::pow(100.0, -2.0 * j / kHeadDim));
  for (uint32_t l = 0; l < kLayers; ++l) {
    const uint32_t s = 10 * (l + 1);
    layers.push_back({weights(kHidden, s, 1), weights(kHeads * kHeadDim * kHidden, s + 1, 0.5),
                      weights(kKvHeads * kHeadDim * kHidden, s + 2, 0.5),
                      weights(kKvHeads * kHeadDim * kHidden, s + 3, 0.5),
                      weights(kHidden * kHeads * kHeadDim, s + 4, 0.3), weights(kHidden, s + 5, 1),
                      weights(kInner * kHidden, s + 6, 0.5), weights(kInner * kHidden, s + 7, 0.5),
                      weights(kHidden * kInner, s + 8, 0.3)});
  }
  norm = weights(kHidden, 2, 1);
  head = weights(size_t{kVocab} * kHidden, 3, 1);
}

std::vector<std::vector<double>> TinyModel::logits(const std::vector<uint32_t>& tokens) const {
  std::vector<std::vector<Vector>> keys(kLayers), values(kLayers);
  std::vector<std::vector<double>> all;
  for (uint32_t p = 0; p < tokens.size(); ++p) {
    Vector x(embedding.begin() + tokens[p] * kHidden, embedding.begin() + (tokens[p] + 1) * kHidden);
    for (uint32_t l = 0; l < kLayers; ++l) {
      const Layer& layer = layers[l];
      const Vector h = normalised(x, layer.norm);
      keys[l].push_back(rotated(product(layer.k, h), frequencies, p));
      values[l].push_back(product(layer.v, h));
      const Vector q = rotated(product(layer.q, h), frequencies, p);
      add_to(x, product(layer.o, attended(q, keys[l], values[l], l == 0 ? 0 : kWindow)));
      const Vector m = normalised(x, layer.post_norm);
      Vector gate = product(layer.gate, m);
      const Vector up = product(layer.up, m);
      for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
      add_to(x, product(layer.down, gate));
    }
    all.push_back(product(head, normalised(x, norm)));
  }
  return all;
}

namespace {

// One program under construction. An operator's result is an Output: its tensor, and the counters that say
// that it is there.
struct Output {
  uint16_t tensor;
  uint32_t row_counter;  // one for each row tile
  uint32_t all_counter;  // counts row tiles
  uint32_t signals_a_tile;
  Rows rows;
};

struct ProgramBuilder {
  ProgramTables& program;
  std::vector<std::vector<Packet>> queues{TinyModel::kWorkers};

  uint16_t add_tensor(TensorEntry entry) {
    if (entry.space != Space::kTape) entry.source = kNoSource;
    program.tensors.push_back(entry);
    return static_cast<uint16_t>(program.tensors.size() - 1);
  }

  uint32_t max_rows(Rows rows) const {
    return rows == Rows::kTokens ? program.entry.max_rows : program.entry.max_samples;
  }
  uint32_t row_tile(Rows rows) const {
    return rows == Rows::kTokens ? program.entry.token_row_tile : program.entry.sample_row_tile;
  }

  uint16_t arena(Rows rows, uint32_t cols) {
    TensorEntry entry{};
    entry.offset = (program.entry.arena_bytes + 63) / 64 * 64;
    entry.rows = max_rows(rows);
    entry.cols = cols;
    entry.row_stride = (cols + 15) / 16 * 64;
    entry.bytes = uint64_t{entry.rows} * entry.row_stride;
    entry.dtype = DType::kF32;
    entry.row_kind = rows;
    entry.space = Space::kArena;
    entry.layout = Layout::kRowMajor;
    program.entry.arena_bytes = entry.offset + entry.bytes;
    return add_tensor(entry);
  }

  uint16_t column(StepColumn column, Rows rows) {
    TensorEntry entry{};
    entry.offset = static_cast<uint64_t>(column);
    entry.rows = max_rows(rows);
    entry.cols = 1;
    entry.row_stride = 4;
    entry.bytes = uint64_t{entry.rows} * 4;
    entry.dtype = DType::kU32;
    entry.row_kind = rows;
    entry.space = Space::kStep;
    entry.layout = Layout::kRowMajor;
    return add_tensor(entry);
  }

  uint32_t add_counters(uint32_t n) {
    program.entry.n_counters += n;
    return program.entry.n_counters - n;
  }

  // An operator of `cols` output columns. `same` are inputs whose row tile is enough, `whole` those needed
  // whole. Split over workers by column tiles when there are several, else by row tiles. `operands` ends with
  // the output.
  Output op(Op op, Rows rows, std::vector<uint16_t> operands, std::vector<uint32_t> immediates, uint32_t cols,
            uint32_t tile_cols, std::vector<Output> same, std::vector<Output> whole) {
    const uint32_t row_tiles = (max_rows(rows) + row_tile(rows) - 1) / row_tile(rows);
    const uint32_t tiles = (cols + tile_cols - 1) / tile_cols;
    const bool by_columns = tiles >= TinyModel::kWorkers;
    Output out{operands.back(), add_counters(row_tiles), add_counters(1),
               by_columns ? TinyModel::kWorkers : 1, rows};
    for (uint32_t worker = 0; worker < TinyModel::kWorkers; ++worker) {
      Packet packet{};
      packet.body = static_cast<uint16_t>(op);
      packet.row_kind = static_cast<uint8_t>(rows);
      packet.tile_cols = tile_cols;
      packet.col_stride = packet.row_stride = 1;
      packet.col_count = static_cast<uint16_t>(tiles);
      if (by_columns) {
        packet.col_first = worker * (tiles / TinyModel::kWorkers);
        packet.col_count = static_cast<uint16_t>(
            worker + 1 < TinyModel::kWorkers ? tiles / TinyModel::kWorkers : tiles - packet.col_first);
      } else {
        packet.row_first = static_cast<uint16_t>(worker);
        packet.row_stride = TinyModel::kWorkers;
      }
      for (uint32_t i = 0; i < kPacketOperands; ++i)
        packet.operand[i] = i < operands.size() ? operands[i] : kNoTensor;
      for (uint32_t i = 0; i < immediates.size(); ++i) packet.immediate[i] = immediates[i];
      packet.wait_first = static_cast<uint32_t>(program.waits.size());
      for (const Output& input : same)
        program.waits.push_back({input.row_counter, 0, input.signals_a_tile, input.rows, Band::kRow, 0});
      for (const Output& input : whole)
        program.waits.push_back({input.all_counter, input.signals_a_tile, 0, input.rows, Band::kNone, 0});
      packet.n_waits = static_cast<uint8_t>(same.size() + whole.size());
      packet.signal_first = static_cast<uint32_t>(program.signals.size());
      program.signals.push_back({out.row_counter, Band::kRow, 0, 0});
      program.signals.push_back({out.all_counter, Band::kNone, 0, 0});
      packet.n_signals = 2;
      queues[worker].push_back(packet);
    }
    return out;
  }

  void protocol(Op op, uint32_t worker, std::vector<Wait> waits, uint32_t signal) {
    Packet packet{};
    packet.body = static_cast<uint16_t>(op);
    packet.row_kind = static_cast<uint8_t>(Rows::kFixed);
    packet.col_count = packet.col_stride = packet.row_stride = 1;
    packet.tile_cols = 1;
    for (uint16_t& operand : packet.operand) operand = kNoTensor;
    packet.wait_first = static_cast<uint32_t>(program.waits.size());
    packet.n_waits = static_cast<uint8_t>(waits.size());
    program.waits.insert(program.waits.end(), waits.begin(), waits.end());
    packet.signal_first = static_cast<uint32_t>(program.signals.size());
    if (signal != kNoSource) {
      program.signals.push_back({signal, Band::kNone, 0, 0});
      packet.n_signals = 1;
    }
    queues[worker].push_back(packet);
  }

  void finish() {
    const uint32_t left = add_counters(1), cleared = add_counters(1);
    protocol(Op::kClearBank, TinyModel::kWorkers - 1, {}, cleared);
    for (uint32_t worker = 0; worker < TinyModel::kWorkers; ++worker) protocol(Op::kLeave, worker, {}, left);
    protocol(Op::kAdvance, 0,
             {{left, 0, TinyModel::kWorkers, Rows::kFixed, Band::kNone, 0},
              {cleared, 0, 1, Rows::kFixed, Band::kNone, 0}},
             kNoSource);
    for (const auto& queue : queues) {
      program.workers.push_back(
          {static_cast<uint32_t>(program.packets.size()), static_cast<uint32_t>(queue.size()), 0, 0});
      program.packets.insert(program.packets.end(), queue.begin(), queue.end());
    }
  }
};

// The tape's tensors: the same in every program.
struct TinyTape {
  TinyBundle& bundle;
  std::map<std::string, TensorEntry> entries;

  void add(const std::string& name, DType dtype, Layout layout, uint32_t rows, uint32_t cols,
           const Vector& values) {
    TensorEntry entry{};
    entry.offset = bundle.tape.append(dtype, layout, rows, cols, values);
    entry.bytes = bundle.tape.bytes.size() - entry.offset;
    entry.rows = rows;
    entry.cols = cols;
    entry.row_stride = layout == Layout::kRowMajor ? cols * dtype_bytes(dtype) : 0;
    entry.source = static_cast<uint32_t>(bundle.tables.sources.size());
    entry.dtype = dtype;
    entry.row_kind = Rows::kFixed;
    entry.space = Space::kTape;
    entry.layout = layout;
    bundle.tables.sources.push_back({name, entry.offset, entry.bytes, 0, 0});
    entries[name] = entry;
  }
  void matrix(const std::string& name, uint32_t rows, const Vector& values) {
    add(name, DType::kBf16, Layout::kRows16Pairs, rows, static_cast<uint32_t>(values.size() / rows), values);
  }
  void vector(const std::string& name, const Vector& values) {
    add(name, DType::kF32, Layout::kRowMajor, 1, static_cast<uint32_t>(values.size()), values);
  }
};

void fill_tape(const TinyModel& model, TinyTape& tape) {
  using M = TinyModel;
  tape.matrix("embedding", M::kVocab, model.embedding);
  tape.add("frequencies", DType::kF64, Layout::kRowMajor, 1, M::kHeadDim / 2, model.frequencies);
  for (uint32_t l = 0; l < M::kLayers; ++l) {
    const std::string at = std::to_string(l) + ".";
    const TinyModel::Layer& layer = model.layers[l];
    tape.vector(at + "norm", layer.norm);
    tape.matrix(at + "q", M::kHeads * M::kHeadDim, layer.q);
    tape.matrix(at + "k", M::kKvHeads * M::kHeadDim, layer.k);
    tape.matrix(at + "v", M::kKvHeads * M::kHeadDim, layer.v);
    tape.matrix(at + "o", M::kHidden, layer.o);
    tape.vector(at + "post_norm", layer.post_norm);
    tape.matrix(at + "gate", M::kInner, layer.gate);
    tape.matrix(at + "up", M::kInner, layer.up);
    tape.matrix(at + "down", M::kHidden, layer.down);
  }
  tape.vector("norm", model.norm);
  tape.matrix("head", M::kVocab, model.head);
}

void build_program(ProgramTables& program, const TinyTape& tape) {
  using M = TinyModel;
  ProgramBuilder b{program};
  constexpr Rows kT = Rows::kTokens, kS = Rows::kSamples;
  constexpr uint32_t kQ = M::kHeads * M::kHeadDim, kKv = M::kKvHeads * M::kHeadDim;
  const auto weight = [&](const std::string& name) { return b.add_tensor(tape.entries.at(name)); };
  const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
  const auto linear = [&](const Output& x, const std::string& name, uint32_t cols) {
    return b.op(Op::kLinear, x.rows, {x.tensor, weight(name), b.arena(x.rows, cols)}, {}, cols, 16, {x}, {});
  };
  const auto norm = [&](const Output& x, const std::string& name) {
    return b.op(Op::kRmsNorm, x.rows, {x.tensor, weight(name), b.arena(x.rows, M::kHidden)},
                {bits(M::kEps), bits(0), M::kHidden}, M::kHidden, M::kHidden, {x}, {});
  };
  const auto add = [&](const Output& x, const Output& y) {
    return b.op(Op::kAdd, x.rows, {x.tensor, y.tensor, b.arena(x.rows, M::kHidden)}, {}, M::kHidden, 16,
                {x, y}, {});
  };

  Output x = b.op(Op::kEmbed, kT,
                  {weight("embedding"), b.column(StepColumn::kTokenIds, kT), b.arena(kT, M::kHidden)}, {},
                  M::kHidden, 16, {}, {});
  const Output table =
      b.op(Op::kRopeTable, kT,
           {weight("frequencies"), b.column(StepColumn::kPositions, kT), b.arena(kT, M::kHeadDim)}, {bits(1)},
           M::kHeadDim, M::kHeadDim, {}, {});
  for (uint32_t l = 0; l < M::kLayers; ++l) {
    const std::string at = std::to_string(l) + ".";
    const Output h = norm(x, at + "norm");
    const Output q = linear(h, at + "q", kQ), k = linear(h, at + "k", kKv), v = linear(h, at + "v", kKv);
    const Output rq = b.op(Op::kRope, kT, {q.tensor, table.tensor, b.arena(kT, kQ)}, {M::kHeadDim}, kQ,
                           M::kHeadDim, {q, table}, {});
    const Output rk = b.op(Op::kRope, kT, {k.tensor, table.tensor, b.arena(kT, kKv)}, {M::kHeadDim}, kKv,
                           M::kHeadDim, {k, table}, {});
    TensorEntry cache{};
    cache.bytes = uint64_t{2} * kKv * 16 * sizeof(float);
    cache.rows = 1;
    cache.cols = kKv;
    cache.kv_group = l;
    cache.dtype = DType::kF32;
    cache.row_kind = Rows::kFixed;
    cache.space = Space::kKv;
    cache.layout = Layout::kKvBlocks;
    const uint16_t state = b.add_tensor(cache);
    const Output kv = b.op(Op::kKvAppend, kT, {rk.tensor, v.tensor, state, state}, {M::kHeadDim}, kKv,
                           M::kHeadDim, {rk, v}, {});
    const Output a = b.op(Op::kAttention, kT, {rq.tensor, state, b.arena(kT, kQ)},
                          {M::kHeadDim, l == 0 ? 0 : M::kWindow, bits(M::kScale), bits(0)}, kQ,
                          kQ / M::kKvHeads, {rq}, {kv});
    x = add(x, linear(a, at + "o", M::kHidden));
    const Output m = norm(x, at + "post_norm");
    const Output gate = linear(m, at + "gate", M::kInner), up = linear(m, at + "up", M::kInner);
    const Output glu = b.op(Op::kGlu, kT, {gate.tensor, up.tensor, b.arena(kT, M::kInner)}, {0}, M::kInner,
                            16, {gate, up}, {});
    x = add(x, linear(glu, at + "down", M::kHidden));
  }
  const Output last =
      b.op(Op::kGatherRows, kS, {x.tensor, b.column(StepColumn::kSampleRows, kS), b.arena(kS, M::kHidden)},
           {}, M::kHidden, 16, {}, {x});
  const Output logits = linear(norm(last, "norm"), "head", M::kVocab);
  b.op(Op::kSample, kS, {logits.tensor, b.column(StepColumn::kSampled, kS)}, {}, 1, 1, {logits}, {});
  b.finish();
}

}  // namespace

TinyBundle make_tiny_bundle(const TinyModel& model) {
  using M = TinyModel;
  TinyBundle bundle;
  TinyTape tape{bundle, {}};
  fill_tape(model, tape);
  for (const auto& [max_rows, row_tile, max_samples, sample_tile] :
       {std::array{4u, 2u, 4u, 2u}, std::array{18u, 5u, 9u, 3u}}) {
    ProgramTables program;
    program.entry.max_rows = max_rows;
    program.entry.max_samples = max_samples;
    program.entry.token_row_tile = row_tile;
    program.entry.sample_row_tile = sample_tile;
    build_program(program, tape);
    bundle.tables.programs.push_back(std::move(program));
  }
  const uint64_t block_bytes = uint64_t{2} * M::kKvHeads * M::kHeadDim * 16 * sizeof(float);
  bundle.tables.kv_groups = {{0, 16, block_bytes, 1, 0}, {M::kWindow, 16, block_bytes, 1, 0}};
  BundleHeader& header = bundle.tables.header;
  header.isa = Isa::kX86_64;
  header.n_workers = M::kWorkers;
  header.vocab = M::kVocab;
  header.max_context = M::kContext;
  header.max_slots = M::kSlots;
  header.kv_dtype = DType::kF32;
  header.n_layers = M::kLayers;
  header.hidden = M::kHidden;
  for (const ProgramTables& program : bundle.tables.programs) {
    for (const Packet& packet : program.packets) {
      const uint64_t bytes = body_scratch_bytes(packet, program.tensors.data(), program.entry.token_row_tile);
      header.scratch_bytes = std::max(header.scratch_bytes, static_cast<uint32_t>(bytes));
    }
  }
  bundle.tape.bytes.resize((bundle.tape.bytes.size() + 63) / 64 * 64);
  header.tape_bytes = bundle.tape.bytes.size();
  const Digest128 digest = xxh3_128(std::as_bytes(std::span(bundle.tape.bytes)));
  header.tape_digest_low = digest.low;
  header.tape_digest_high = digest.high;
  return bundle;
}

Result<Engine> make_tiny_engine(const TinyBundle& bundle, const EngineOptions& options) {
  PLOW_TRY(BundleFile file, BundleFile::from_bytes(serialise_bundle(bundle.tables)));
  return Engine::create(std::move(file), std::as_bytes(std::span(bundle.tape.bytes)), options);
}

}  // namespace plow
