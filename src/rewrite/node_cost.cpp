#include "rewrite/node_cost.h"

#include "ops/tile_rule.h"

#include <algorithm>
#include <cmath>

namespace plow {
namespace {

struct ColumnRange {
  uint32_t begin = 0, end = 0;
};

// An operator over columns of a value, cut into tiles.
class TiledOperator {
 public:
  TiledOperator(Op op, std::span<const ValueType> inputs, const ValueType& output, const Attributes& attributes)
      : rule_(tile_rule(op)), cols_(output.shape.cols) {
    for (const ValueType& input : inputs) push(input);
    push(output);
    instance_ = {op, attributes, operands_};
    tile_cols_ = tile_width(kDefaultTileCols, rule_->column_unit(instance_), cols_);
  }
  TiledOperator(const TiledOperator&) = delete;
  TiledOperator& operator=(const TiledOperator&) = delete;

  uint32_t tile_cols() const { return tile_cols_; }
  uint32_t n_tiles() const { return n_tiles(cols_, tile_cols_); }

  // Whether the share of some worker reads columns of input i that are not in its share of the producer's tiles.
  bool waits(uint32_t input, uint32_t producer_tile_cols, uint32_t workers) const {
    const uint32_t input_cols = operands_[input].cols;
    const uint32_t pieces = std::min(n_tiles(cols_, tile_cols_), workers);
    if (std::min(n_tiles(input_cols, producer_tile_cols), workers) != pieces) return true;
    for (uint32_t w = 0; w < pieces; ++w) {
      const ColumnRange out = run(cols_, tile_cols_, w, pieces);
      const ColumnRange written = run(input_cols, producer_tile_cols, w, pieces);
      const ColumnRange read = columns_read(input, out);
      if (read.begin < read.end && (read.begin < written.begin || read.end > written.end)) return true;
    }
    return false;
  }

 private:
  void push(const ValueType& type) {
    operands_.push_back({type.shape.row_kind, type.shape.rows, type.shape.cols});
  }

  static uint32_t n_tiles(uint32_t cols, uint32_t tile_cols) { return (cols + tile_cols - 1) / tile_cols; }

  static ColumnRange run(uint32_t cols, uint32_t tile_cols, uint32_t worker, uint32_t pieces) {
    const uint64_t n = n_tiles(cols, tile_cols);
    const auto first = static_cast<uint32_t>(worker * n / pieces);
    const auto last = static_cast<uint32_t>((worker + uint64_t{1}) * n / pieces);
    return {first * tile_cols, std::min(last * tile_cols, cols)};
  }

  // By the first and the last tile of the run: footprints grow with the columns.
  ColumnRange columns_read(uint32_t input, const ColumnRange& out) const {
    ColumnRange read{UINT32_MAX, 0};
    std::vector<Access> accesses;
    const uint32_t last = (out.end - 1) / tile_cols_ * tile_cols_;
    rule_->footprint(instance_, out.begin, std::min(out.begin + tile_cols_, cols_), accesses);
    rule_->footprint(instance_, last, out.end, accesses);
    for (const Access& access : accesses) {
      if (access.writes || access.operand != input) continue;
      read.begin = std::min(read.begin, access.col_begin);
      read.end = std::max(read.end, access.col_end);
    }
    return read;
  }

  const TileRule* rule_;
  uint32_t cols_;
  uint32_t tile_cols_ = 0;
  std::vector<OperandShape> operands_;
  OpInstance instance_;
};

class ProblemBuilder {
 public:
  ProblemBuilder(const EGraph& egraph, const RewriteCost& cost) : egraph_(egraph), cost_(cost) {}

  EGraphProblem run(std::span<const ENodeId> roots) {
    result_.classes = egraph_.classes();
    place_.assign(egraph_.n_nodes(), 0);
    for (uint32_t c = 0; c < result_.classes.size(); ++c) place_[result_.classes[c].value] = c;
    for (const ENodeId eclass : result_.classes) tile_cols_.push_back(widest_tile(eclass));
    for (const ENodeId eclass : result_.classes) {
      std::vector<ExtractionNode>& nodes = result_.problem.classes.emplace_back();
      for (const ENodeId id : egraph_.eclass(eclass).nodes) nodes.push_back(node_of(id));
    }
    for (const ENodeId root : roots) result_.problem.roots.push_back(place_of(root));
    result_.problem.wait = cost_.wait();
    return std::move(result_);
  }

 private:
  uint32_t place_of(ENodeId id) const { return place_[egraph_.find(id).value]; }

  std::vector<ValueType> input_types(ENodeId id) const {
    std::vector<ValueType> types;
    for (const ENodeId input : egraph_.inputs_of(id)) types.push_back(egraph_.eclass(input).type);
    return types;
  }

  // Who will write a class is not known while the waits of its readers are. The widest tiles are assumed, those of the
  // writer with the fewest pieces, so that no wait is left out that comes in the end.
  uint32_t widest_tile(ENodeId eclass) const {
    const EClass& members = egraph_.eclass(eclass);
    uint32_t widest = members.given.valid() ? kDefaultTileCols : 1;
    for (const ENodeId id : members.nodes) {
      const ENode& node = egraph_.node(id);
      if (node.is_given()) continue;
      const std::vector<ValueType> inputs = input_types(id);
      widest = std::max(widest, TiledOperator(node.op, inputs, members.type, node.attributes).tile_cols());
    }
    return widest;
  }

  ExtractionNode node_of(ENodeId id) const {
    const ENode& node = egraph_.node(id);
    ExtractionNode result;
    if (node.is_given()) return result;
    const ValueType& type = egraph_.eclass(id).type;
    const std::vector<ValueType> inputs = input_types(id);
    const TiledOperator tiled(node.op, inputs, type, node.attributes);
    NodePlacement placement{tiled.n_tiles(), {}};
    for (uint32_t i = 0; i < node.n_inputs; ++i) {
      const ENodeId input = node.inputs[i];
      const ENodeId given = egraph_.eclass(input).given;
      const bool is_there = given.valid() && is_leaf(egraph_.node(given).op) && egraph_.node(given).op != kOuterValue;
      const uint32_t place = place_of(input);
      const bool waits = !is_there && tiled.waits(i, tile_cols_[place], cost_.n_workers);
      placement.waits.push_back(waits);
      result.inputs.push_back({place, waits});
    }
    result.cost = cost_.node(node.op, inputs, type, node.attributes, placement);
    return result;
  }

  const EGraph& egraph_;
  const RewriteCost& cost_;
  EGraphProblem result_;
  std::vector<uint32_t> place_;      // by representative
  std::vector<uint32_t> tile_cols_;  // by class
};

// Rows of a row tile where there are many (compile/programs.cpp).
constexpr double kRowTile = 64;
// Tokens of an answer for each token of its prompt.
constexpr double kAnswerShare = 0.25;

}  // namespace

double RewriteCost::node(Op op, std::span<const ValueType> inputs, const ValueType& output,
                         const Attributes& attributes, const NodePlacement& placement) const {
  double sum = 0;
  for (const WeightedStep& step : steps) {
    const double by_columns = std::min<double>(placement.n_tiles, n_workers);
    const double pieces = by_columns > 1 ? by_columns : std::min<double>(step.row_tiles, n_workers);
    Load load = op_load(op, inputs, output, attributes, step.size);
    load.inputs = {};
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Shape& shape = inputs[i].shape;
      if (!placement.waits[i] || shape.row_kind == Rows::kFixed) continue;
      const double rows = shape.row_kind == Rows::kTokens ? step.size.tokens : step.size.samples;
      load.inputs += Bytes(rows * shape.cols * dtype_bytes(inputs[i].dtype));
    }
    Surroundings around;
    around.remote = (n_workers - 1.0) / n_workers;
    sum += step.weight * load_time(*part, share_of(load, 1 / pieces), around).value;
  }
  return sum;
}

double RewriteCost::wait() const {
  double weight = 0;
  for (const WeightedStep& step : steps) weight += step.weight;
  return n_workers > 1 ? weight * wait_ns(*part) : 0;
}

RewriteCost request_cost(const Part& part, uint32_t n_workers, uint32_t chunk_rows) {
  const double rows = chunk_rows;
  const WeightedStep prompt{{.tokens = rows, .samples = 1}, std::ceil(rows / kRowTile), 1};
  const WeightedStep answer{{.tokens = 1, .samples = 1}, 1, std::max(1.0, kAnswerShare * rows)};
  return {&part, n_workers, {prompt, answer}};
}

EGraphProblem extraction_problem(const EGraph& egraph, const RewriteCost& cost, std::span<const ENodeId> roots) {
  return ProblemBuilder(egraph, cost).run(roots);
}

}  // namespace plow
