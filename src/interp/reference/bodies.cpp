#include "interp/reference/bodies.h"

#include "abi/attention_parts.h"
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

// x / sqrt(mean x^2 + eps) * (gain + offset), over groups as long as the gain.
Row normalised(Row x, const Row& gain, double eps, double offset) {
  for (size_t first = 0; first < x.size(); first += gain.size()) {
    double squares = 0;
    for (size_t i = 0; i < gain.size(); ++i) squares += x[first + i] * x[first + i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(gain.size()) + eps);
    for (size_t i = 0; i < gain.size(); ++i) x[first + i] *= scale * (gain[i] + offset);
  }
  return x;
}

// A whole vector of the tape.
Row vector(const Tile& tile, uint32_t input) { return tile.read(input, 0, 0, tile.operand(input).cols); }

void rms_norm(const Tile& tile) {
  const Row gain = vector(tile, 1);
  for (uint32_t r = tile.row_begin(); r < tile.row_end(); ++r)
    tile.write(r, normalised(tile.read(0, r, tile.begin(), tile.end()), gain, tile.f32(0), tile.f32(1)));
}

void norm_add(const Tile& tile) {
  const Row gain = vector(tile, 1);
  for (uint32_t r = tile.row_begin(); r < tile.row_end(); ++r) {
    Row out = normalised(tile.read(0, r, tile.begin(), tile.end()), gain, tile.f32(0), tile.f32(1));
    const Row residual = tile.read(2, r, tile.begin(), tile.end());
    for (size_t i = 0; i < out.size(); ++i) out[i] += residual[i];
    tile.write(r, out);
  }
}

// Columns [first, first + length of a row) of the rows of the packet's row tile, times those of the matrix.
std::vector<Row> products(const Tile& tile, const std::vector<Row>& rows, uint32_t matrix, uint32_t first) {
  std::vector<Row> outputs(rows.size(), Row(tile.end() - tile.begin(), 0.0));
  for (uint32_t c = tile.begin(); c < tile.end() && !rows.empty(); ++c) {
    const Row weights = tile.read(matrix, c, first, first + static_cast<uint32_t>(rows[0].size()));
    for (size_t r = 0; r < rows.size(); ++r) {
      outputs[r][c - tile.begin()] = std::inner_product(weights.begin(), weights.end(), rows[r].begin(), 0.0);
    }
  }
  return outputs;
}

std::vector<Row> input_rows(const Tile& tile, uint32_t first, uint32_t last) {
  std::vector<Row> rows;
  for (uint32_t r = tile.row_begin(); r < tile.row_end(); ++r) rows.push_back(tile.read(0, r, first, last));
  return rows;
}

std::vector<Row> whole_rows(const Tile& tile) { return input_rows(tile, 0, tile.operand(0).cols); }

// Attributes 0 and 1 are eps and offset.
std::vector<Row> normalised_rows(const Tile& tile) {
  const Row gain = vector(tile, 1);
  std::vector<Row> rows = whole_rows(tile);
  for (Row& row : rows) row = normalised(row, gain, tile.f32(0), tile.f32(1));
  return rows;
}

void write_rows(const Tile& tile, const std::vector<Row>& rows) {
  for (size_t r = 0; r < rows.size(); ++r) tile.write(tile.row_begin() + static_cast<uint32_t>(r), rows[r]);
}

void linear(const Tile& tile, const std::vector<Row>& rows, uint32_t matrix) {
  write_rows(tile, products(tile, rows, matrix, 0));
}

void linear_bias(const Tile& tile, const std::vector<Row>& rows, uint32_t matrix) {
  std::vector<Row> out = products(tile, rows, matrix, 0);
  const Row bias = tile.read(matrix + 1, 0, tile.begin(), tile.end());
  for (Row& row : out) {
    for (size_t i = 0; i < row.size(); ++i) row[i] += bias[i];
  }
  write_rows(tile, out);
}

// With or without a residual.
void linear_part(const Tile& tile, bool adds) {
  std::vector<Row> out = products(tile, input_rows(tile, tile.u32(0), tile.u32(1)), 1, tile.u32(0));
  for (size_t r = 0; r < out.size() && adds; ++r) {
    const Row residual = tile.read(2, tile.row_begin() + static_cast<uint32_t>(r), tile.begin(), tile.end());
    for (size_t i = 0; i < residual.size(); ++i) out[r][i] += residual[i];
  }
  write_rows(tile, out);
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

// The matrix of the gate; that of what it lets through follows it.
void glu_linear(const Tile& tile, const std::vector<Row>& rows, uint32_t gate, uint32_t activation) {
  std::vector<Row> out = products(tile, rows, gate, 0);
  const std::vector<Row> up = products(tile, rows, gate + 1, 0);
  for (size_t r = 0; r < out.size(); ++r) {
    for (size_t i = 0; i < out[r].size(); ++i) out[r][i] = activate(activation, out[r][i]) * up[r][i];
  }
  write_rows(tile, out);
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

// Each head of head_dim turned by cosines and sines.
Row rotated(const Row& x, const Row& table, uint32_t head_dim) {
  const size_t half = table.size() / 2;
  Row out = x;
  for (size_t head = 0; head < x.size(); head += head_dim) {
    for (size_t j = 0; j < half; ++j) {
      out[head + j] = x[head + j] * table[j] - x[head + half + j] * table[half + j];
      out[head + half + j] = x[head + half + j] * table[j] + x[head + j] * table[half + j];
    }
  }
  return out;
}

// A row's table.
Row angles(const Tile& tile, uint32_t input, uint32_t row) {
  return tile.read(input, row, 0, tile.operand(input).cols);
}

void rope(const Tile& tile) {
  for (uint32_t r = tile.row_begin(); r < tile.row_end(); ++r)
    tile.write(r, rotated(tile.read(0, r, tile.begin(), tile.end()), angles(tile, 1, r), tile.u32(0)));
}

// Heads normalised with the attributes eps and offset from 1 on, then turned.
Row norm_rotated(const Tile& tile, const Row& x, const Row& gain, double offset, const Row& table,
                 uint32_t eps_attribute) {
  return rotated(normalised(x, gain, tile.f32(eps_attribute), offset), table, tile.u32(0));
}

void norm_rope(const Tile& tile) {
  const Row gain = vector(tile, 1);
  for (uint32_t r = tile.row_begin(); r < tile.row_end(); ++r) {
    const Row x = tile.read(0, r, tile.begin(), tile.end());
    tile.write(r, norm_rotated(tile, x, gain, tile.f32(2), angles(tile, 2, r), 1));
  }
}

uint32_t block_of(const Tile& tile, const TensorEntry& tensor, uint32_t block_tokens, uint32_t slot,
                  uint32_t position) {
  const StepColumns& step = tile.step();
  return step.block_tables[tensor.kv_group][size_t{slot} * step.table_width + position / block_tokens];
}

// keys(row): of the tile's columns. `values`: the input that holds values.
template <class Keys>
void append(const Tile& tile, uint32_t block_tokens, uint32_t values_input, const Keys& keys_of) {
  const uint32_t head_dim = tile.u32(0);
  const TensorEntry& state = tile.operand(tile.output_index());
  for (uint32_t r = tile.row_begin(); r < tile.row_end(); ++r) {
    tile.expect(tile.output_index(), true, r, tile.begin(), tile.end());
    const Row keys = keys_of(r);
    const Row values = tile.read(values_input, r, tile.begin(), tile.end());
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

void kv_append(const Tile& tile, uint32_t block_tokens) {
  append(tile, block_tokens, 1, [&](uint32_t r) { return tile.read(0, r, tile.begin(), tile.end()); });
}

void rope_kv_append(const Tile& tile, uint32_t block_tokens) {
  append(tile, block_tokens, 1, [&](uint32_t r) {
    return rotated(tile.read(0, r, tile.begin(), tile.end()), angles(tile, 2, r), tile.u32(0));
  });
}

void norm_rope_kv_append(const Tile& tile, uint32_t block_tokens) {
  const Row gain = vector(tile, 1);
  append(tile, block_tokens, 2, [&](uint32_t r) {
    const Row keys = tile.read(0, r, tile.begin(), tile.end());
    return norm_rotated(tile, keys, gain, tile.f32(2), angles(tile, 3, r), 1);
  });
}

// One query head of one row over positions of the cache, by the largest score: the sum of weighted values,
// not divided.
struct Attended {
  Row values;
  double maximum = -INFINITY, sum = 0;
};

PositionRange attended_positions(const Tile& tile, uint32_t position) {
  const uint32_t window = tile.u32(1);
  return {window == 0 || position + 1 < window ? 0 : position + 1 - window, position + 1};
}

Attended attend(const Tile& tile, const Row& query, uint32_t block_tokens, uint32_t slot,
                PositionRange positions, uint32_t kv_head) {
  const uint32_t head_dim = tile.u32(0);
  const double scale = tile.f32(2), softcap = tile.f32(3);
  const uint32_t cache = tile.output_index() - 1;
  const TensorEntry& state = tile.operand(cache);
  tile.expect(cache, false, 0, kv_head * head_dim, (kv_head + 1) * head_dim);
  const auto place = [&](uint32_t p, uint32_t d) {
    return tile.memory().kv_place(state, block_of(tile, state, block_tokens, slot, p), p, kv_head, head_dim,
                                  d);
  };
  Attended out{Row(head_dim, 0.0)};
  Row scores;
  for (uint32_t p = positions.begin; p < positions.end; ++p) {
    double score = 0;
    for (uint32_t d = 0; d < head_dim; ++d)
      score += query[d] * tile.memory().load_kv(state.kv_group, place(p, d).key);
    score *= scale;
    scores.push_back(softcap > 0 ? softcap * std::tanh(score / softcap) : score);
    out.maximum = std::max(out.maximum, scores.back());
  }
  for (uint32_t p = positions.begin; p < positions.end; ++p) {
    const double weight = std::exp(scores[p - positions.begin] - out.maximum);
    out.sum += weight;
    for (uint32_t d = 0; d < head_dim; ++d)
      out.values[d] += weight * tile.memory().load_kv(state.kv_group, place(p, d).value);
  }
  return out;
}

// The row of the step that row r of an operator that attends is.
uint32_t attending_row(const Tile& tile, uint32_t r) {
  const bool sampled = tile.operand(tile.output_index()).row_kind == Rows::kSamples;
  return sampled ? tile.step().sample_rows[r] : r;
}

// turn(row, query head): the query that attends.
template <class Turn>
void attend_all(const Tile& tile, uint32_t block_tokens, const Turn& turn) {
  const uint32_t head_dim = tile.u32(0);
  const uint32_t queries_a_kv_head = tile.operand(0).cols / tile.operand(tile.output_index() - 1).cols;
  for (uint32_t r = tile.row_begin(); r < tile.row_end(); ++r) {
    const uint32_t row = attending_row(tile, r);
    Row out;
    for (uint32_t c = tile.begin(); c < tile.end(); c += head_dim) {
      const Row query = turn(r, tile.read(0, r, c, c + head_dim));
      const Attended head =
          attend(tile, query, block_tokens, tile.step().row_slots[row],
                 attended_positions(tile, tile.step().positions[row]), c / head_dim / queries_a_kv_head);
      for (const double value : head.values) out.push_back(value / head.sum);
    }
    tile.write(r, out);
  }
}

void attention(const Tile& tile, uint32_t block_tokens) {
  attend_all(tile, block_tokens, [](uint32_t, const Row& query) { return query; });
}

void rope_attention(const Tile& tile, uint32_t block_tokens) {
  attend_all(tile, block_tokens,
             [&](uint32_t r, const Row& query) { return rotated(query, angles(tile, 1, r), tile.u32(0)); });
}

void norm_rope_attention(const Tile& tile, uint32_t block_tokens) {
  const Row gain = vector(tile, 1);
  attend_all(tile, block_tokens, [&](uint32_t r, const Row& query) {
    return norm_rotated(tile, query, gain, 0, angles(tile, 2, r), 4);
  });
}

// One part of one kv head of one row.
Row attention_part_tile(const Tile& tile, const AttentionParts& layout, uint32_t block_tokens, uint32_t r,
                        uint32_t kv_head, uint32_t part) {
  const uint32_t row = attending_row(tile, r), first = kv_head * layout.queries * layout.head_dim;
  const PositionRange positions =
      positions_of_part(attended_positions(tile, tile.step().positions[row]), part, layout.parts);
  Row out(layout.tile_cols());
  for (uint32_t query = 0; query < layout.queries; ++query) {
    const uint32_t c = first + query * layout.head_dim;
    const Attended head = attend(tile, tile.read(0, r, c, c + layout.head_dim), block_tokens,
                                 tile.step().row_slots[row], positions, kv_head);
    std::copy(head.values.begin(), head.values.end(), out.begin() + layout.output(query));
    out[layout.maximum(query)] = head.maximum;
    out[layout.sum(query)] = head.sum;
  }
  return out;
}

void attention_part(const Tile& tile, uint32_t block_tokens) {
  const AttentionParts layout{tile.u32(0), tile.u32(4), tile.operand(0).cols / tile.operand(1).cols};
  const auto width = static_cast<uint32_t>(layout.tile_cols());
  for (uint32_t r = tile.row_begin(); r < tile.row_end(); ++r) {
    Row out;
    for (uint32_t t = tile.begin() / width; t * width < tile.end(); ++t) {
      const Row part = attention_part_tile(tile, layout, block_tokens, r, t / layout.parts, t % layout.parts);
      out.insert(out.end(), part.begin(), part.end());
    }
    tile.write(r, out);
  }
}

void attention_merge(const Tile& tile) {
  const AttentionParts layout{tile.u32(0), tile.u32(1), tile.u32(2)};
  const auto width = static_cast<uint32_t>(layout.tile_cols()), kv_head_cols = layout.parts * width;
  for (uint32_t r = tile.row_begin(); r < tile.row_end(); ++r) {
    Row out(tile.end() - tile.begin(), 0.0);
    for (uint32_t c = 0; c < out.size(); c += layout.head_dim) {
      const uint32_t head = (tile.begin() + c) / layout.head_dim, query = head % layout.queries;
      const uint32_t first = head / layout.queries * kv_head_cols;
      const Row parts = tile.read(0, r, first, first + kv_head_cols);
      double maximum = -INFINITY, sum = 0;
      for (uint32_t p = 0; p < layout.parts; ++p)
        maximum = std::max(maximum, parts[p * width + layout.maximum(query)]);
      for (uint32_t p = 0; p < layout.parts; ++p) {
        const double factor = std::exp(parts[p * width + layout.maximum(query)] - maximum);
        sum += factor * parts[p * width + layout.sum(query)];
        for (uint32_t d = 0; d < layout.head_dim; ++d)
          out[c + d] += factor * parts[p * width + layout.output(query) + d];
      }
      for (uint32_t d = 0; d < layout.head_dim; ++d) out[c + d] /= sum;
    }
    tile.write(r, out);
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
  // Of the cache, which is the last input of those that have one.
  const auto block_tokens = [&] { return groups[tile.operand(call.n_inputs - 1).kv_group].block_tokens; };
  switch (static_cast<Op>(call.packet->body)) {
    case Op::kEmbed:
      return embed(tile);
    case Op::kScale:
      return each_element(tile, 1, [c = tile.f32(0)](double x, double) { return x * c; });
    case Op::kRmsNorm:
      return rms_norm(tile);
    case Op::kLinear:
      return linear(tile, whole_rows(tile), 1);
    case Op::kBiasAdd:
      return bias_add(tile);
    case Op::kRopeTable:
      return rope_table(tile);
    case Op::kRope:
      return rope(tile);
    case Op::kKvAppend:
      return kv_append(tile, block_tokens());
    case Op::kAttention:
      return attention(tile, block_tokens());
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
    case Op::kLinearAdd:
      return linear_part(tile, true);
    case Op::kLinearPart:
      return linear_part(tile, false);
    case Op::kNormLinear:
      return linear(tile, normalised_rows(tile), 2);
    case Op::kGluLinear:
      return glu_linear(tile, whole_rows(tile), 1, tile.u32(0));
    case Op::kNormGluLinear:
      return glu_linear(tile, normalised_rows(tile), 2, tile.u32(2));
    case Op::kLinearBias:
      return linear_bias(tile, whole_rows(tile), 1);
    case Op::kNormLinearBias:
      return linear_bias(tile, normalised_rows(tile), 2);
    case Op::kNormRope:
      return norm_rope(tile);
    case Op::kRopeKvAppend:
      return rope_kv_append(tile, block_tokens());
    case Op::kNormRopeKvAppend:
      return norm_rope_kv_append(tile, block_tokens());
    case Op::kRopeAttention:
      return rope_attention(tile, block_tokens());
    case Op::kNormRopeAttention:
      return norm_rope_attention(tile, block_tokens());
    case Op::kNormAdd:
      return norm_add(tile);
    case Op::kAttentionPart:
      return attention_part(tile, block_tokens());
    case Op::kAttentionMerge:
      return attention_merge(tile);
    default:
      PLOW_CHECK(false, "operator {} has no body", call.packet->body);
  }
}

}  // namespace plow::reference
