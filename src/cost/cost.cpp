#include "cost/cost.h"

#include <algorithm>
#include <cmath>

namespace plow {

namespace {

// Figures at given points of something that never gets cheaper: `total(i)` is what the whole takes at
// points[i]. Between the points it is linear, below the first constant, beyond the last proportional. A
// figure that was measured a little too low does not make the larger cheaper than the smaller.
template <size_t N, class Total>
double total_at(const std::array<double, N>& points, double x, const Total& total) {
  double before = total(0);
  if (x <= points[0]) return before;
  for (size_t i = 1; i < N; ++i) {
    const double here = std::max(before, total(i));
    if (x <= points[i]) return before + (here - before) * (x - points[i - 1]) / (points[i] - points[i - 1]);
    before = here;
  }
  return before * x / points[N - 1];
}

Figure operator+(Figure figure, size_t offset) {
  return static_cast<Figure>(static_cast<size_t>(figure) + offset);
}

// log2 of the bytes at which the Read figures are taken (figures.def).
constexpr std::array<double, 3> kReadPoints = {17, 22, 27};
constexpr std::array<double, 6> kRowPoints = {1, 2, 4, 8, 16, 64};
constexpr std::array<double, 3> kQueryPoints = {1, 6, 64};

// Nanoseconds of a byte. Beyond the last point nothing changes: it comes from memory.
NsPer<Bytes> byte_price(const Part& part, const Surroundings& around) {
  const double size = std::min(std::log2(std::max(around.working_set.value, 1.0)), kReadPoints.back());
  const auto price = [&](Figure first) {
    return total_at(kReadPoints, size, [&](size_t i) { return 1 / part[first + i]; });
  };
  const double alone = price(Figure::kReadSmallAlone);
  const double all = std::max(alone, price(Figure::kReadSmallAll));
  return {alone + (all - alone) * around.streaming};
}

Nanoseconds product_time(const Part& part, const Load& load) {
  if (load.products.value == 0) return {};
  const Figure first = load.wide ? Figure::kMatrixF32At1 : Figure::kMatrixBf16At1;
  // A weight with `product_rows` rows: two operations a row.
  const double weight =
      total_at(kRowPoints, load.product_rows, [&](size_t i) { return 2 * kRowPoints[i] / part[first + i]; });
  return Nanoseconds(load.products.value / (2 * load.product_rows) * weight);
}

Nanoseconds attention_time(const Part& part, const Load& load) {
  if (load.pairs == 0) return {};
  // A position with all queries of a pass.
  const double position = total_at(kQueryPoints, load.queries, [&](size_t i) {
    return kQueryPoints[i] *
           (part[Figure::kPairAt1 + i] + load.head_columns * part[Figure::kPairColumnAt1 + i]);
  });
  return Nanoseconds(load.pairs / load.queries * position);
}

Nanoseconds row_time(const Part& part, const RowWorks& works) {
  Nanoseconds time;
  for (size_t b = 0; b < works.size(); ++b) {
    time += works[b].runs * NsPer<Runs>{part[Figure::kNormRun + 2 * b]};
    time += works[b].elements * NsPer<Elements>{part[Figure::kNormElement + 2 * b]};
  }
  return time;
}

// Streaming and arithmetic overlap, but not to the last nanosecond.
Nanoseconds overlapped(const Part& part, Nanoseconds a, Nanoseconds b) {
  return std::max(a, b) + std::min(a, b) * part[Figure::kOverlap];
}

// The load of one operator as it is gathered.
class Gatherer {
 public:
  Gatherer(std::span<const ValueType> inputs, const ValueType& output, const Attributes& attributes,
           const StepSize& size)
      : inputs_(inputs), output_(output), attributes_(attributes), size_(size) {
    rows_ = rows_of(inputs.empty() ? output : inputs[0]);
    for (const ValueType& input : inputs) {
      if (input.shape.row_kind != Rows::kFixed && input.dtype == DType::kF32)
        load_.inputs += Bytes(rows_of(input) * input.shape.cols * sizeof(float));
    }
  }

  // A line for each operator: one that has none does not compile.
  Load run(Op op) {
    switch (op) {
      case Op::kWeight:
      case Op::kConstant:
      case Op::kKvState:
      case Op::kStepInput:
      case Op::kLeave:
      case Op::kClearBank:
      case Op::kAdvance:
        break;
      case Op::kEmbed:
      case Op::kGatherRows:  // not the rows of what they pick from
        rows_ = rows_of(output_), rows(RowBody::kCopy, output_);
        break;
      case Op::kScale:
      case Op::kBiasAdd:
      case Op::kAdd:
        rows(RowBody::kSum, output_);
        break;
      case Op::kRmsNorm:
        groups(RowBody::kNorm, output_, attributes_[2]);
        break;
      case Op::kRopeTable:
        rows(RowBody::kAngles, output_);
        break;
      case Op::kRope:
        groups(RowBody::kRotate, output_, attributes_[0]);
        break;
      case Op::kKvAppend:
        rows(RowBody::kStore, inputs_[0], 2);
        break;
      case Op::kGlu:
        rows(activation(attributes_[0]), output_);
        break;
      case Op::kSoftCap:
        rows(RowBody::kCap, output_);
        break;
      case Op::kSample:
        rows(RowBody::kPick, inputs_[0]);
        break;
      case Op::kLinear:
        product(inputs_[1], inputs_[0].shape.cols);
        break;
      case Op::kAttention:
        attention(inputs_[0], inputs_[1]);
        break;
      case Op::kAttentionPart:
        attention(inputs_[0], inputs_[1]), epilogue(RowBody::kSum);
        break;
      case Op::kAttentionMerge:  // reads more than it writes
        rows(RowBody::kSum, inputs_[0]);
        break;
      case Op::kLinearPart:
        product(inputs_[1], attributes_[1] - attributes_[0]);
        break;
      case Op::kLinearAdd:
        product(inputs_[1], attributes_[1] - attributes_[0]), epilogue(RowBody::kSum);
        break;
      case Op::kLinearBias:
        product(inputs_[1], inputs_[0].shape.cols), epilogue(RowBody::kSum);
        break;
      case Op::kGluLinear:
        gate_and_up(1, attributes_[0]);
        break;
      case Op::kNormLinear:
        prologue_norm(), product(inputs_[2], inputs_[0].shape.cols);
        break;
      case Op::kNormLinearBias:
        prologue_norm(), product(inputs_[2], inputs_[0].shape.cols), epilogue(RowBody::kSum);
        break;
      case Op::kNormGluLinear:
        prologue_norm(), gate_and_up(2, attributes_[2]);
        break;
      case Op::kNormRope:
        groups(RowBody::kNorm, output_, attributes_[0]), groups(RowBody::kRotate, output_, attributes_[0]);
        break;
      case Op::kNormAdd:
        groups(RowBody::kNorm, output_, output_.shape.cols), epilogue(RowBody::kSum);
        break;
      case Op::kNormRopeKvAppend:
        groups(RowBody::kNorm, inputs_[0], attributes_[0]);
        [[fallthrough]];
      case Op::kRopeKvAppend:
        groups(RowBody::kRotate, inputs_[0], attributes_[0]), rows(RowBody::kStore, inputs_[0], 2);
        break;
      case Op::kNormRopeAttention:
        groups(RowBody::kNorm, inputs_[0], attributes_[0]);
        [[fallthrough]];
      case Op::kRopeAttention:
        groups(RowBody::kRotate, inputs_[0], attributes_[0]), attention(inputs_[0], inputs_.back());
        break;
    }
    return load_;
  }

 private:
  double rows_of(const ValueType& type) const {
    const Shape& shape = type.shape;
    return shape.row_kind == Rows::kTokens    ? size_.tokens
           : shape.row_kind == Rows::kSamples ? size_.samples
                                              : shape.rows;
  }

  void rows(RowBody body, const ValueType& what, double times = 1) {
    RowWork& work = load_.row_wise[static_cast<size_t>(body)];
    work.runs += Runs(rows_);
    work.elements += Elements(times * rows_ * what.shape.cols);
  }

  void groups(RowBody body, const ValueType& what, uint32_t group) {
    RowWork& work = load_.row_wise[static_cast<size_t>(body)];
    work.runs += Runs(rows_ * what.shape.cols / std::max(group, 1u));
    work.elements += Elements(rows_ * what.shape.cols);
  }

  // What a product does with its sums before it stores them: no run begins.
  void epilogue(RowBody body) {
    load_.row_wise[static_cast<size_t>(body)].elements += Elements(rows_ * output_.shape.cols);
  }

  void prologue_norm() {
    load_.prologue[static_cast<size_t>(RowBody::kNorm)] = {Runs(rows_), Elements(rows_ * inputs_[0].shape.cols)};
  }

  static RowBody activation(uint32_t attribute) { return attribute == 0 ? RowBody::kSilu : RowBody::kGelu; }

  void gate_and_up(size_t gate, uint32_t attribute) {
    product(inputs_[gate], inputs_[0].shape.cols);
    product(inputs_[gate + 1], inputs_[0].shape.cols);
    epilogue(activation(attribute));
  }

  // x times the transpose of `weight`, over `depth` of its columns.
  void product(const ValueType& weight, double depth) {
    const double elements = static_cast<double>(weight.shape.rows) * depth;
    load_.weights += Bytes(elements * bytes_per_value(weight.dtype));
    load_.products += Flops(2 * rows_ * elements);
    load_.product_rows = rows_;
    load_.wide = weight.dtype == DType::kF32;
  }

  // Queries of one KV head share a pass, and consecutive rows of a sequence as far as 64 queries go.
  void attention(const ValueType& q, const ValueType& cache) {
    const uint32_t head_dim = attributes_[0], window = attributes_[1];
    const double group = static_cast<double>(q.shape.cols) / cache.shape.cols;
    const double heads = static_cast<double>(q.shape.cols) / head_dim;
    const double run = rows_ / std::max(1.0, std::min(size_.sequences, rows_));
    // Scores are made of whole units of 64 positions: half of a unit more than a row attends to, on average.
    constexpr double kHalfUnit = 32;
    const double most = window == 0 ? 1e18 : window;
    const double positions = std::min(size_.context + (run + 1) / 2, most) + (run > 1 ? kHalfUnit : 0);
    load_.pairs = rows_ * heads * positions;
    load_.queries = std::max(1.0, std::min(64.0, run * group));
    load_.head_columns = head_dim;
    load_.kv = Bytes(rows_ / run * std::min(size_.context + run, most + run) * 2 * cache.shape.cols *
                     dtype_bytes(cache.dtype));
  }

  std::span<const ValueType> inputs_;
  const ValueType& output_;
  const Attributes& attributes_;
  const StepSize& size_;
  double rows_ = 0;
  Load load_;
};

}  // namespace

Load op_load(Op op, std::span<const ValueType> inputs, const ValueType& output, const Attributes& attributes,
             const StepSize& size) {
  return Gatherer(inputs, output, attributes, size).run(op);
}

Load node_load(const OpGraph& graph, NodeId id, const StepSize& size) {
  const Node& node = graph.node(id);
  if (is_leaf(node.op)) return {};
  std::vector<ValueType> inputs;
  for (const NodeId input : graph.inputs_of(id))
    inputs.push_back({graph.node(input).dtype, graph.node(input).shape});
  return op_load(node.op, inputs, {node.dtype, node.shape}, node.attributes, size);
}

Load share_of(const Load& load, double share) {
  Load part = load;
  part.weights = load.weights * share;
  part.products = load.products * share;
  part.kv = load.kv * share;
  part.pairs = load.pairs * share;
  for (RowWork& work : part.row_wise) work = {work.runs * share, work.elements * share};
  return part;
}

Nanoseconds load_time(const Part& part, const Load& load, const Surroundings& around) {
  const NsPer<Bytes> byte = byte_price(part, around);
  Nanoseconds time(part[Figure::kPacket]);
  time += overlapped(part, load.weights * byte, product_time(part, load));
  time += overlapped(part, load.kv * byte, attention_time(part, load));
  time += row_time(part, load.row_wise) + row_time(part, load.prologue);
  time += load.inputs * around.remote / PerNs<Bytes>{part[Figure::kTransfer]};
  return time;
}

double node_ns(const Part& part, const Load& load, uint32_t workers) {
  Surroundings around;
  // What all workers have written is read by each of them where a product needs whole rows.
  if (load.products.value > 0) around.remote = (workers - 1.0) / workers;
  return load_time(part, share_of(load, 1.0 / workers), around).value;
}

double wait_ns(const Part& part) { return part[Figure::kHop]; }

}  // namespace plow
