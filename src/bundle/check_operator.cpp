#include "abi/step.h"
#include "bundle/check.h"
#include "ops/tile_rule.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace plow {
namespace {

// The operands of one packet, as its operator sees them.
struct Operands {
  const ProgramView& program;
  const Packet& packet;
  uint32_t n_inputs;

  const TensorEntry& input(uint32_t i) const { return program.tensors[packet.operand[i]]; }
  const TensorEntry& output() const { return program.tensors[packet.operand[n_inputs]]; }
  uint32_t attribute(uint32_t i) const { return packet.immediate[i]; }
};

Error wrong(const std::string& what) {
  return input_error(what + "; the bundle was written wrongly, compile it again with plowc");
}

bool same_rows(const TensorEntry& a, const TensorEntry& b) {
  return a.row_kind == b.row_kind && a.rows == b.rows;
}
bool is_fixed(const TensorEntry& tensor) { return tensor.row_kind == Rows::kFixed; }
bool is_row(const TensorEntry& tensor) { return is_fixed(tensor) && tensor.rows == 1; }
bool is_column(const TensorEntry& tensor, StepColumn column) {
  return tensor.space == Space::kStep && tensor.offset == static_cast<uint64_t>(column);
}
bool of_tokens(const TensorEntry& tensor) { return tensor.row_kind == Rows::kTokens; }
bool of_samples(const TensorEntry& tensor) { return tensor.row_kind == Rows::kSamples; }
bool is_kv(const TensorEntry& tensor) { return tensor.space == Space::kKv; }
float as_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Of the operators that append to a cache: keys and values of T rows, and the same cache before and after.
bool keys_fit(const Operands& o, uint32_t values) {
  const TensorEntry& before = o.input(o.n_inputs - 1);
  const TensorEntry& after = o.output();
  return of_tokens(o.input(0)) && of_tokens(o.input(values)) && is_kv(before) && is_kv(after) &&
         after.offset == before.offset && after.kv_group == before.kv_group;
}
// Of those that attend to one.
bool queries_fit(const Operands& o) {
  return !is_fixed(o.output()) && same_rows(o.input(0), o.output()) && is_kv(o.input(o.n_inputs - 1));
}

// What the definition demands of rows, memories and the vocabulary; the tile rule looks at the columns.
bool rows_fit(Op op, const Operands& o, uint32_t vocab) {
  const TensorEntry& a = o.input(0);
  const TensorEntry& out = o.output();
  switch (op) {
    case Op::kEmbed:
      return is_column(o.input(1), StepColumn::kTokenIds) && of_tokens(out) && a.rows >= vocab;
    case Op::kScale:
    case Op::kSoftCap:
      return same_rows(a, out);
    case Op::kRmsNorm:
    case Op::kBiasAdd:
      return same_rows(a, out) && is_row(o.input(1));
    case Op::kLinear:
    case Op::kLinearPart:
    case Op::kGluLinear:
      return same_rows(a, out);
    case Op::kLinearAdd:
      return same_rows(a, out) && same_rows(o.input(2), out);
    case Op::kNormLinear:
    case Op::kNormGluLinear:
      return same_rows(a, out) && is_row(o.input(1));
    case Op::kLinearBias:
      return same_rows(a, out) && is_row(o.input(2));
    case Op::kNormLinearBias:
      return same_rows(a, out) && is_row(o.input(1)) && is_row(o.input(3));
    case Op::kNormAdd:
      return same_rows(a, out) && is_row(o.input(1)) && same_rows(o.input(2), out);
    case Op::kRopeTable:
      return is_row(a) && is_column(o.input(1), StepColumn::kPositions) && of_tokens(out);
    case Op::kRope:
      return same_rows(a, out) && same_rows(o.input(1), out) && !is_fixed(a);
    case Op::kNormRope:
      return same_rows(a, out) && is_row(o.input(1)) && same_rows(o.input(2), out) && !is_fixed(a);
    case Op::kKvAppend:
      return keys_fit(o, 1);
    case Op::kRopeKvAppend:
      return keys_fit(o, 1) && of_tokens(o.input(2));
    case Op::kNormRopeKvAppend:
      return keys_fit(o, 2) && is_row(o.input(1)) && of_tokens(o.input(3));
    case Op::kAttention:
    case Op::kAttentionPart:
      return queries_fit(o);
    case Op::kAttentionMerge:
      return same_rows(a, out) && !is_fixed(out);
    case Op::kRopeAttention:
      return queries_fit(o) && same_rows(o.input(1), out);
    case Op::kNormRopeAttention:
      return queries_fit(o) && is_row(o.input(1)) && same_rows(o.input(2), out);
    case Op::kAdd:
    case Op::kGlu:
      return same_rows(a, out) && same_rows(o.input(1), out);
    case Op::kGatherRows:
      return of_tokens(a) && is_column(o.input(1), StepColumn::kSampleRows) && of_samples(out);
    case Op::kSample:
      return of_samples(a) && a.cols == vocab && is_column(out, StepColumn::kSampled);
    default:
      return false;
  }
}

bool attributes_fit(Op op, const Operands& o) {
  constexpr uint32_t kActivations = 3;  // of glu (src/ops/README.md)
  const auto finite = [&](uint32_t i) { return std::isfinite(as_float(o.attribute(i))); };
  switch (op) {
    case Op::kScale:
    case Op::kRopeTable:
      return finite(0);
    case Op::kRmsNorm:
    case Op::kNormLinear:
    case Op::kNormLinearBias:
    case Op::kNormAdd:
      return finite(0) && finite(1);
    case Op::kGlu:
    case Op::kGluLinear:
      return o.attribute(0) < kActivations;
    case Op::kNormGluLinear:
      return finite(0) && finite(1) && o.attribute(2) < kActivations;
    case Op::kNormRope:
    case Op::kNormRopeKvAppend:
      return finite(1) && finite(2);
    case Op::kAttention:
    case Op::kAttentionPart:
    case Op::kRopeAttention:
      return finite(2) && finite(3);
    case Op::kNormRopeAttention:
      return finite(2) && finite(3) && finite(4);
    case Op::kSoftCap:
      return finite(0) && as_float(o.attribute(0)) > 0;
    default:
      return true;
  }
}

// Weights are fixed and in the tape; what is computed is f32 in the arena, the cache or the step's column of
// tokens.
bool types_fit(const Operands& o) {
  for (uint32_t i = 0; i < o.n_inputs; ++i) {
    const TensorEntry& tensor = o.input(i);
    if (tensor.space == Space::kArena && tensor.dtype != DType::kF32) return false;
    if (tensor.space == Space::kStep && tensor.dtype != DType::kU32) return false;
    if (tensor.space == Space::kTape && (!is_fixed(tensor) || tensor.dtype == DType::kU32)) return false;
  }
  const TensorEntry& out = o.output();
  if (out.space == Space::kStep && out.dtype != DType::kU32) return false;
  return out.space == Space::kArena ? out.dtype == DType::kF32 && out.layout == Layout::kRowMajor
                                    : out.space != Space::kTape;
}

Status check_columns(const Operands& o, uint32_t unit) {
  const Packet& packet = o.packet;
  const uint32_t cols = o.output().cols;
  const uint64_t last = packet.col_first + uint64_t{packet.col_count - 1u} * packet.col_stride;
  if (packet.col_count == 0 || packet.tile_cols == 0 || (packet.col_count > 1 && packet.col_stride == 0) ||
      last * packet.tile_cols >= cols) {
    return wrong(fmt::format("column tiles {}, +{} x {} of {} columns are outside an output of {} columns",
                             packet.col_first, packet.col_count, packet.col_stride, packet.tile_cols, cols));
  }
  if (packet.tile_cols < cols && packet.tile_cols % unit != 0) {
    return wrong(
        fmt::format("column tiles of {} columns are no multiple of the {} that its definition cuts by",
                    packet.tile_cols, unit));
  }
  return {};
}

}  // namespace

Status check_operator(const BundleParts& parts, const ProgramView& program, const Packet& packet) {
  const Op op = static_cast<Op>(packet.body);
  if (is_protocol(op)) return {};
  const TileRule* rule = tile_rule(op);
  PLOW_CHECK(rule != nullptr, "operator {} has no tile rule", op_name(op));
  for (uint32_t i = 0; i < kPacketOperands; ++i) {
    if ((i < rule->n_operands) != (packet.operand[i] != kNoTensor)) {
      return wrong(fmt::format("it has {} inputs and an output", rule->n_operands - 1));
    }
  }
  const Operands operands{program, packet, rule->n_operands - 1};
  const std::vector<OperandShape> shapes = operand_shapes(program, packet);
  const OpInstance instance = op_instance(packet, shapes);
  const uint32_t unit = rule->column_unit(instance);
  if (unit == 0 || !rows_fit(op, operands, parts.header->vocab) || !attributes_fit(op, operands)) {
    return wrong("the shapes of its operands and its attributes do not fit its definition");
  }
  if (!types_fit(operands))
    return wrong("an operand has a dtype or lies in a memory that its definition does not have");
  if (static_cast<Rows>(packet.row_kind) != instance_rows(instance)) {
    return wrong(fmt::format("its row tiles count {}, those of its output {}",
                             rows_name(static_cast<Rows>(packet.row_kind)),
                             rows_name(instance_rows(instance))));
  }
  return check_columns(operands, unit);
}

std::vector<OperandShape> operand_shapes(const ProgramView& program, const Packet& packet) {
  std::vector<OperandShape> shapes;
  for (uint32_t i = 0; i < kPacketOperands && packet.operand[i] != kNoTensor; ++i) {
    const TensorEntry& tensor = program.tensors[packet.operand[i]];
    shapes.push_back({tensor.row_kind, tensor.rows, tensor.cols});
  }
  return shapes;
}

OpInstance op_instance(const Packet& packet, std::span<const OperandShape> shapes) {
  OpInstance instance{static_cast<Op>(packet.body), {}, shapes};
  std::copy(std::begin(packet.immediate), std::end(packet.immediate), instance.attributes.begin());
  return instance;
}

}  // namespace plow
