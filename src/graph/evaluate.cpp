#include "graph/evaluate.h"

#include "base/float16.h"

#include <algorithm>

namespace plow {
namespace {

constexpr uint32_t kKeep = 0xffffffffu;  // as a last use: never freed

float rounded(float value, DType dtype) {
  if (dtype == DType::kBf16) return bf16_to_float(float_to_bf16(value));
  return dtype == DType::kF16 ? f16_to_float(float_to_f16(value)) : value;
}

Result<Matrix> load_weight(const OpGraph& graph, const Node& node, const WeightSource& weights) {
  Matrix out;
  out.rows = node.shape.rows;
  out.cols = node.shape.cols;
  out.floats.resize(size_t{out.rows} * out.cols);
  PLOW_TRY_STATUS(weights.read_rows(graph.weights[node.leaf].name, 0, out.rows, out.cols, out.floats.data()));
  // The tape holds what the node's dtype can: blocks of few bits become bf16, and matrices what was asked
  // for.
  const float plus = graph.weights[node.leaf].plus;
  for (float& value : out.floats) value = rounded(value + plus, node.dtype);
  if (out.rows == 1) {
    out.values.assign(out.floats.begin(), out.floats.end());
    out.floats = {};
  }
  return out;
}

Matrix load_constant(const OpGraph& graph, const Node& node) {
  Matrix out(node.shape.rows, node.shape.cols);
  out.values = graph.constants[node.leaf].values;
  for (double& value : out.values) {
    if (node.dtype == DType::kF32) value = static_cast<float>(value);
  }
  return out;
}

Matrix column_of(const std::vector<uint32_t>& values) {
  Matrix out(static_cast<uint32_t>(values.size()), 1);
  out.values.assign(values.begin(), values.end());
  return out;
}

Matrix step_input(const EvalContext& context, StepColumn column) {
  switch (column) {
    case StepColumn::kTokenIds:
      return column_of(context.step->token_ids);
    case StepColumn::kPositions:
      return column_of(context.positions);
    case StepColumn::kRowSlots:
      return column_of(context.row_slots);
    case StepColumn::kSampleRows:
      return column_of(context.step->sample_rows);
    case StepColumn::kSampled:
      break;
  }
  return {};
}

}  // namespace

Result<Evaluator> Evaluator::create(const OpGraph& graph, const WeightSource& weights, uint32_t max_slots) {
  Evaluator evaluator;
  evaluator.graph_ = &graph;
  evaluator.history_.resize(max_slots);
  evaluator.kv_.resize(graph.kv_states.size());
  for (EvalKv& kv : evaluator.kv_) {
    kv.keys.resize(max_slots);
    kv.values.resize(max_slots);
  }
  evaluator.leaves_.resize(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op == Op::kWeight) {
      PLOW_TRY(evaluator.leaves_[i], load_weight(graph, node, weights));
    } else if (node.op == Op::kConstant) {
      evaluator.leaves_[i] = load_constant(graph, node);
    }
  }
  return evaluator;
}

std::vector<Matrix> Evaluator::run_nodes(const EvalStep& step, const std::vector<uint32_t>& last_use) {
  EvalContext context{graph_, &step, {}, {}, &kv_, &history_};
  for (const Span& span : step.spans) {
    std::vector<uint32_t>& history = history_[span.slot];
    PLOW_CHECK(span.first_position <= history.size() && span.first_row == context.positions.size(),
               "the span of slot {} leaves a gap", span.slot);
    history.resize(span.first_position);
    for (uint32_t i = 0; i < span.n_rows; ++i) {
      history.push_back(step.token_ids[span.first_row + i]);
      context.row_slots.push_back(span.slot);
      context.positions.push_back(span.first_position + i);
    }
  }
  std::vector<Matrix> values(graph_->nodes.size());
  for (uint32_t i = 0; i < values.size(); ++i) {
    const Node& node = graph_->nodes[i];
    if (node.op == Op::kStepInput) values[i] = step_input(context, static_cast<StepColumn>(node.leaf));
    if (is_leaf(node.op)) continue;
    std::vector<const Matrix*> inputs;
    for (NodeId input : graph_->inputs_of(NodeId(i))) {
      const bool stored = graph_->node(input).op == Op::kWeight || graph_->node(input).op == Op::kConstant;
      inputs.push_back(stored ? &leaves_[input.value] : &values[input.value]);
    }
    values[i] = op_def(node.op).reference(context, NodeId(i), inputs, node.attributes);
    for (NodeId input : graph_->inputs_of(NodeId(i))) {
      if (last_use[input.value] == i) values[input.value] = {};
    }
  }
  return values;
}

std::vector<Matrix> Evaluator::run(const EvalStep& step) {
  return run_nodes(step, std::vector<uint32_t>(graph_->nodes.size(), kKeep));
}

Matrix Evaluator::run_for(const EvalStep& step, NodeId wanted) {
  std::vector<uint32_t> last_use(graph_->nodes.size(), kKeep);
  for (uint32_t i = 0; i < graph_->nodes.size(); ++i) {
    for (NodeId input : graph_->inputs_of(NodeId(i))) last_use[input.value] = i;
  }
  last_use[wanted.value] = kKeep;
  return std::move(run_nodes(step, last_use)[wanted.value]);
}

}  // namespace plow
