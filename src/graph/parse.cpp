#include "abi/step.h"
#include "base/text_cursor.h"
#include "graph/graph.h"
#include "graph/op_def.h"

#include <charconv>
#include <optional>

namespace plow {
namespace {

// The line's reader asks ok() once, at the end.
class LineReader : public TextCursor {
 public:
  using TextCursor::TextCursor;

  NodeId node_id() {
    expect("%");
    return NodeId(number<uint32_t>());
  }

  // Letters, digits and underscores.
  std::string_view word() {
    const std::string_view text = rest();
    size_t n = 0;
    while (n < text.size() && (std::isalnum(static_cast<unsigned char>(text[n])) || text[n] == '_')) ++n;
    return take(n);
  }

  std::string quoted() {
    std::string out;
    expect("\"");
    while (ok() && !accept("\"")) {
      if (accept("\\x")) {
        const std::string_view digits = take(2);
        unsigned value = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
        if (error != std::errc{} || end != digits.data() + 2) {
          fail();
          break;
        }
        out += static_cast<char>(value);
      } else if (!at_end() && rest().front() != '\\') {
        out += take(1);
      } else {
        fail();
      }
    }
    return out;
  }
};

std::optional<Op> op_of(std::string_view name) {
#define PLOW_LEAF(number, Name, text) \
  if (name == #text) return Op::k##Name;
#define PLOW_OP(number, Name, text) \
  if (name == #text) return Op::k##Name;
#include "abi/ops.def"
  return std::nullopt;
}

void read_type(LineReader& line, Node& node) {  // "f32[T, 576]"
  const std::string_view name = line.word();
  bool known = false;
  for (DType dtype : {DType::kF32, DType::kBf16, DType::kF16, DType::kF64, DType::kU32, DType::kQ8_0, DType::kQ4_0}) {
    if (name != dtype_name(dtype)) continue;
    node.dtype = dtype;
    known = true;
  }
  if (!known) line.fail();
  line.expect("[");
  if (line.accept("T")) {
    node.shape.row_kind = Rows::kTokens;
  } else if (line.accept("S")) {
    node.shape.row_kind = Rows::kSamples;
  } else {
    node.shape.rows = line.number<uint32_t>();
  }
  line.expect(", ");
  node.shape.cols = line.number<uint32_t>();
  line.expect("]");
}

void read_constant(LineReader& line, OpGraph& graph) {
  ConstantData constant{line.quoted(), {}};
  line.expect(" {");
  while (line.ok() && !line.accept("}")) {
    if (!constant.values.empty()) line.expect(", ");
    constant.values.push_back(line.number<double>());
  }
  graph.constants.push_back(std::move(constant));
}

void read_leaf(LineReader& line, OpGraph& graph, Node& node) {
  switch (node.op) {
    case Op::kWeight:
      line.expect(" ");
      node.leaf = static_cast<uint32_t>(graph.weights.size());
      graph.weights.push_back({line.quoted()});
      if (line.accept(" plus=")) graph.weights.back().plus = line.number<float>();
      return;
    case Op::kConstant:
      line.expect(" ");
      node.leaf = static_cast<uint32_t>(graph.constants.size());
      read_constant(line, graph);
      return;
    case Op::kKvState: {
      KvStateRef state;
      state.layer = line.field<uint32_t>("layer");
      state.kv_heads = line.field<uint32_t>("kv_heads");
      state.head_dim = line.field<uint32_t>("head_dim");
      state.window = line.field<uint32_t>("window");
      node.leaf = static_cast<uint32_t>(graph.kv_states.size());
      graph.kv_states.push_back(state);
      return;
    }
    default: {
      line.expect(" ");
      const std::string_view name = line.word();
      while (step_column_name(static_cast<StepColumn>(node.leaf)) != nullptr &&
             name != step_column_name(static_cast<StepColumn>(node.leaf))) {
        ++node.leaf;
      }
      if (step_column_name(static_cast<StepColumn>(node.leaf)) == nullptr) line.fail();
    }
  }
}

void read_operator(LineReader& line, OpGraph& graph, Node& node) {
  line.expect("(");
  while (line.ok() && !line.accept(")")) {
    if (node.n_inputs > 0) line.expect(", ");
    graph.inputs.push_back(line.node_id());
    ++node.n_inputs;
  }
  const OpDef& def = op_def(node.op);
  for (size_t i = 0; i < def.attributes.size(); ++i) {
    const AttributeDef& attribute = def.attributes[i];
    node.attributes[i] = attribute.kind == AttributeKind::kU32
                             ? line.field<uint32_t>(attribute.name)
                             : attribute_bits(line.field<float>(attribute.name));
  }
}

void read_node(LineReader& line, OpGraph& graph) {
  if (line.node_id() != NodeId(graph.nodes.size())) line.fail();
  line.expect(" = ");
  const std::optional<Op> op = op_of(line.word());
  if (!op || !line.ok()) return line.fail();
  Node node;
  node.op = *op;
  node.first_input = static_cast<uint32_t>(graph.inputs.size());
  if (is_leaf(node.op)) {
    read_leaf(line, graph, node);
  } else {
    read_operator(line, graph, node);
  }
  line.expect(" : ");
  read_type(line, node);
  if (line.accept(" @layer ")) node.layer = line.number<uint32_t>();
  graph.nodes.push_back(node);
}

void read_heading(LineReader& line, OpGraph& graph) {
  line.expect("graph");
  graph.vocab = line.field<uint32_t>("vocab");
  graph.hidden = line.field<uint32_t>("hidden");
  graph.n_layers = line.field<uint32_t>("layers");
  graph.max_position = line.field<uint32_t>("max_position");
  line.expect(" tokens=");
  graph.tokens = line.node_id();
}

}  // namespace

Result<OpGraph> parse_graph_lines(std::string_view text) {
  OpGraph graph;
  for (uint32_t number = 1; number == 1 || !text.empty(); ++number) {
    const size_t end = text.find('\n');
    LineReader line(text.substr(0, end));
    if (number == 1) {
      read_heading(line, graph);
    } else {
      read_node(line, graph);
    }
    if (!line.ok() || !line.at_end()) {
      return input_error(
          fmt::format("operator graph: line {} cannot be read from '{}' on; print_graph() shows the form",
                      number, line.rest().substr(0, 40)));
    }
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return graph;
}

Result<OpGraph> parse_graph(std::string_view text) {
  PLOW_TRY(OpGraph graph, parse_graph_lines(text));
  PLOW_TRY_STATUS(verify_graph(graph));
  return graph;
}

}  // namespace plow
