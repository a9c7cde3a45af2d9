#include "interp/reference/bodies.h"

#include "ops/sample/sample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <numeric>

namespace plow::reference {
namespace {

using Row = std::vector<double>;

// A call with the checks of its footprint.
class Tile {
 public:
  explicit Tile(const BodyCall& call) : call_(call) {}

  uint32_t row_begin() const { return call_.row_begin; }
  uint32_t row_end() const { return call_.row_end; }
  uint32_t begin() const { return call_.run->col_begin; }
  uint32_t end() const { return call_.run->col_end; }
  uint32_t output_index() const { return call_.n_inputs; }
  const TensorEntry& operand(uint32_t i) const { return call_.program->tensors[call_.packet->operand[i]]; }
  uint32_t u32(uint32_t immediate) const { return call_.packet->immediate[immediate]; }
  double f32(uint32_t immediate) const { return std::bit_cast<float>(call_.packet->immediate[immediate]); }
  Memory& memory() const { return *call_.memory; }
  StepColumns& step() const { return *call_.step; }
  std::span<const uint32_t> history(uint32_t slot) const { return (*call_.history)[slot]; }

  Row read(uint32_t input, uint32_t row, uint32_t first, uint32_t last) const {
    expect(input, false, row, first, last);
    Row values(last - first);
    memory().load(operand(input), row, first, last, values.data());
    return values;
  }
  void write(uint32_t row, const Row& values) const {
    expect(output_index(), true, row, begin(), end());
    memory().store(operand(output_index()), row, begin(), end(), values.data());
  }

  // Aborts when the tile rule does not declare the access: then every check that rests on footprints would be
  // worth nothing.
  void expect(uint32_t operand_index, bool writes, uint32_t row, uint32_t first, uint32_t last) const {
    for (const Access& access : call_.run->accesses) {
      if (access.operand != operand_index || access.writes != writes || first < access.col_begin ||
          last > access.col_end)
        continue;
      if (access.rows == RowAccess::kFixed && (row < access.row_begin || row >= access.row_end)) continue;
      if (access.rows == RowAccess::kTile && (row < row_begin() || row >= row_end())) continue;
      return;
    }
    PLOW_CHECK(false, "{} {} operand {} row {} columns [{}, {}), which its tile rule does not declare",
               op_name(static_cast<Op>(call_.packet->body)), writes ? "writes" : "reads", operand_index, row,
               first, last);
  }

 private:
  const BodyCall& call_;
};

// Operators whose output element depends on the elements in its place: f(column, inputs...).
template <class F>
void each_element(const Tile& tile, uint32_t n_inputs, const F& f) {
  for (uint32_t r = tile.row_begin(); r < tile.row_end(); ++r) {
    const Row x = tile.read(0, r, tile.begin(), tile.end());
    const Row y = n_inputs == 2 ? tile.read(1, r, tile.begin(), tile.end()) : x;
    Row out(x.size());
    for (size_t i = 0; i < x.size(); ++i) out[i] = f(x[i], y[i]);
    tile.write(r, out);
  }
}

void embed(const Tile& tile) {
  for (uint32_t r = tile.row_begin(); r < tile.row_end(); ++r) {
    tile.expect(1, false, r, 0, 1);
    tile.write(r, tile.read(0, tile.step().token_ids[r], tile.begin(), tile.end()));
  }
}

void bias_add(const Tile& tile) {
  const Row bias = tile.read(1, 0, tile.begin(), tile.end());
  for (uint32_t r = tile.row_begin(); r < tile.row_end(); ++r) {
    Row x = tile.read(0, r, tile.begin(), tile.end());
    for (size_t i = 0; i < x.size(); ++i) x[i] += bias[i];
    tile.write(r, x);
  }
}

void rms_norm(const Tile& tile) {
  const double eps = tile.f32(0), offset = tile.f32(1);
  const uint32_t group = tile.u32(2);
  const Row gain = tile.read(1, 0, 0, group);
  for (uint32_t r = tile.row_begin(); r < tile.row_end(); ++r) {
    Row x = tile.read(0, r, tile.begin(), tile.end());
    for (size_t first = 0; first < x.size(); first += group) {
      double squares = 0;
      for (size_t i = first; i < first + group; ++i) squares += x[i] * x[i];
      const double scale = 1 / std::sqrt(squares / group + eps);
      for (size_t i = 0; i < group; ++i) x[first + i] *= scale * (gain[i] + offset);
    }
    tile.write(r, x);
  }
}

void linear(const Tile& tile) {
  const uint32_t k = tile.operand(0).cols;
  std::vector<Row> inputs;
  for (uint32_t r = tile.row_begin(); r < tile.row_end(); ++r) inputs.push_back(tile.read(0, r, 0, k));
  std::vector<Row> outputs(inputs.size(), Row(tile.end() - tile.begin(), 0.0));
  for (uint32_t c = tile.begin(); c < tile.end(); ++c) {
    const Row weights = tile.read(1, c, 0, k);
    for (size_t r = 0; r < inputs.size(); ++r) {
      outputs[r][c - tile.begin()] =
          std::inner_product(weights.begin(), weights.end(), inputs[r].begin(), 0.0);
    }
  }
  for (size_t r = 0; r < inputs.size(); ++r)
    tile.write(tile.row_begin() + static_cast<uint32_t>(r), outputs[r]);
}

void rope_table(const Tile& tile) {
  const double factor = tile.f32(0);
  const uint32_t half = tile.operand(0).cols;
  const Row frequency = tile.read(0, 0, 0, half);
  for (uint32_t r = tile.row_begin(); r < tile.row_end(); ++r) {
    tile.expect(1, false, r, 0, 1);
    const double position = tile.step().positions[r];
    Row out(size_t{2} * half);
    for (uint32_t j = 0; j < half; ++j) {
      out[j] = std::cos(position * frequency[j]) * factor;
      out[half + j] = std::sin(position * frequency[j]) * factor;
    }
    tile.write(r, out);
  }
}

void rope(const Tile& tile) {
  const uint32_t head_dim = tile.u32(0);
  const uint32_t half = tile.operand(1).cols / 2;
  for (uint32_t r = tile.row_begin(); r < tile.row_end(); ++r) {
    const Row table = tile.read(1, r, 0, 2 * half);
    const Row x = tile.read(0, r, tile.begin(), tile.end());
    Row out = x;
    for (size_t head = 0; head < x.size(); head += head_dim) {
      for (uint32_t j = 0; j < half; ++j) {
        out[head + j] = x[head + j] * table[j] - x[head + half + j] * table[half + j];
        out[head + half + j] = x[head + half + j] * table[j] + x[head + j] * table[half + j];
      }
    }
    tile.write(r, out);
  }
}

uint32_t block_of(const Tile& tile, const TensorEntry& tensor, uint32_t block_tokens, uint32_t slot,
                  uint32_t position) {
  const StepColumns& step = tile.step();
  return step.block_tables[tensor.kv_group][size_t{slot} * step.table_width + position / block_tokens];
}

void kv_append(const Tile& tile, uint32_t block_tokens) {
  const uint32_t head_dim = tile.u32(0);
  const TensorEntry& state = tile.operand(tile.output_index());
  for (uint32_t r = tile.row_begin(); r < tile.row_end(); ++r) {
    tile.expect(tile.output_index(), true, r, tile.begin(), tile.end());
    const Row keys = tile.read(0, r, tile.begin(), tile.end());
    const Row values = tile.read(1, r, tile.begin(), tile.end());
    const uint32_t position = tile.step().positions[r];
    const uint32_t block = block_of(tile, state, block_tokens, tile.step().row_slots[r], position);
    for (uint32_t c = tile.begin(); c < tile.end(); ++c) {
      const KvPlace place =
          tile.memory().kv_place(state, block, position, c / head_dim, head_dim, c % head_dim);
      tile.memory().store_kv(state.kv_group, place.key, keys[c - tile.begin()]);
      tile.memory().store_kv(state.kv_group, place.value, values[c - tile.begin()]);
    }
  }
}

// One query head of one row over the cache.
Row attend(const Tile& tile, const Row& query, uint32_t block_tokens, uint32_t slot, uint32_t position,
           uint32_t kv_head) {
  const uint32_t head_dim = tile.u32(0), window = tile.u32(1);
  const double scale = tile.f32(2), softcap = tile.f32(3);
  const TensorEntry& state = tile.operand(1);
  tile.expect(1, false, 0, kv_head * head_dim, (kv_head + 1) * head_dim);
  const uint32_t first = window == 0 || position + 1 < window ? 0 : position + 1 - window;
  const auto place = [&](uint32_t p, uint32_t d) {
    return tile.memory().kv_place(state, block_of(tile, state, block_tokens, slot, p), p, kv_head, head_dim,
                                  d);
  };
  Row scores;
  for (uint32_t p = first; p <= position; ++p) {
    double score = 0;
    for (uint32_t d = 0; d < head_dim; ++d)
      score += query[d] * tile.memory().load_kv(state.kv_group, place(p, d).key);
    score *= scale;
    scores.push_back(softcap > 0 ? softcap * std::tanh(score / softcap) : score);
  }
  const double most = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double& score : scores) total += score = std::exp(score - most);
  Row out(head_dim, 0.0);
  for (uint32_t p = first; p <= position; ++p) {
    for (uint32_t d = 0; d < head_dim; ++d) {
      out[d] += scores[p - first] / total * tile.memory().load_kv(state.kv_group, place(p, d).value);
    }
  }
  return out;
}

void attention(const Tile& tile, uint32_t block_tokens) {
  const uint32_t head_dim = tile.u32(0);
  const uint32_t queries_a_kv_head = tile.operand(0).cols / tile.operand(1).cols;
  for (uint32_t r = tile.row_begin(); r < tile.row_end(); ++r) {
    Row out;
    for (uint32_t c = tile.begin(); c < tile.end(); c += head_dim) {
      const Row query = tile.read(0, r, c, c + head_dim);
      const Row head = attend(tile, query, block_tokens, tile.step().row_slots[r], tile.step().positions[r],
                              c / head_dim / queries_a_kv_head);
      out.insert(out.end(), head.begin(), head.end());
    }
    tile.write(r, out);
  }
}

double activate(uint32_t activation, double x) {
  switch (activation) {
    case 0:
      return x / (1 + std::exp(-x));
    case 1:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    default:
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
  }
}

void gather_rows(const Tile& tile) {
  for (uint32_t s = tile.row_begin(); s < tile.row_end(); ++s) {
    tile.expect(1, false, s, 0, 1);
    tile.write(s, tile.read(0, tile.step().sample_rows[s], tile.begin(), tile.end()));
  }
}

void sample(const Tile& tile) {
  StepColumns& step = tile.step();
  for (uint32_t s = tile.row_begin(); s < tile.row_end(); ++s) {
    tile.expect(1, true, s, 0, 1);
    const Row logits = tile.read(0, s, 0, tile.operand(0).cols);
    const uint32_t row = step.sample_rows[s];
    const auto history = tile.history(step.row_slots[row]).first(step.positions[row] + 1);
    const SampleResult result = sample_reference(logits, history, step.sampling[s]);
    step.sampled[s] = {result.token, static_cast<float>(result.logprob)};
  }
}

}  // namespace

void run_body(const BodyCall& call, std::span<const KvGroup> groups) {
  const Tile tile(call);
  const auto block_tokens = [&](uint32_t operand) {
    return groups[tile.operand(operand).kv_group].block_tokens;
  };
  switch (static_cast<Op>(call.packet->body)) {
    case Op::kEmbed:
      return embed(tile);
    case Op::kScale:
      return each_element(tile, 1, [c = tile.f32(0)](double x, double) { return x * c; });
    case Op::kRmsNorm:
      return rms_norm(tile);
    case Op::kLinear:
      return linear(tile);
    case Op::kBiasAdd:
      return bias_add(tile);
    case Op::kRopeTable:
      return rope_table(tile);
    case Op::kRope:
      return rope(tile);
    case Op::kKvAppend:
      return kv_append(tile, block_tokens(2));
    case Op::kAttention:
      return attention(tile, block_tokens(1));
    case Op::kAdd:
      return each_element(tile, 2, [](double x, double y) { return x + y; });
    case Op::kGlu:
      return each_element(tile, 2, [a = tile.u32(0)](double x, double y) { return activate(a, x) * y; });
    case Op::kGatherRows:
      return gather_rows(tile);
    case Op::kSoftCap:
      return each_element(tile, 1, [c = tile.f32(0)](double x, double) { return c * std::tanh(x / c); });
    case Op::kSample:
      return sample(tile);
    default:
      PLOW_CHECK(false, "operator {} has no body", call.packet->body);
  }
}

}  // namespace plow::reference
