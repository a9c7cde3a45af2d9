#include "abi/step.h"
#include "bundle/check.h"

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

constexpr uint32_t kNotAnOperator = 0xffffffffu;

// ops/README.md.
uint32_t n_inputs(Op op) {
  switch (op) {
    case Op::kScale:
    case Op::kSoftCap:
    case Op::kSample:
      return 1;
    case Op::kEmbed:
    case Op::kRmsNorm:
    case Op::kLinear:
    case Op::kBiasAdd:
    case Op::kRopeTable:
    case Op::kRope:
    case Op::kAttention:
    case Op::kAdd:
    case Op::kGlu:
    case Op::kGatherRows:
      return 2;
    case Op::kKvAppend:
      return 3;
    default:
      return kNotAnOperator;
  }
}

bool same_rows(const TensorEntry& a, const TensorEntry& b) {
  return a.row_kind == b.row_kind && a.rows == b.rows;
}
bool same_shape(const TensorEntry& a, const TensorEntry& b) { return same_rows(a, b) && a.cols == b.cols; }
bool is_row(const TensorEntry& tensor, uint32_t cols) {
  return tensor.row_kind == Rows::kFixed && tensor.rows == 1 && tensor.cols == cols;
}
bool is_column(const TensorEntry& tensor, StepColumn column) {
  return tensor.space == Space::kStep && tensor.offset == static_cast<uint64_t>(column);
}
bool of_tokens(const TensorEntry& tensor) { return tensor.row_kind == Rows::kTokens; }
bool of_samples(const TensorEntry& tensor) { return tensor.row_kind == Rows::kSamples; }
bool divides(uint32_t part, uint32_t whole) { return part != 0 && whole % part == 0; }
bool is_kv(const TensorEntry& tensor) { return tensor.space == Space::kKv; }
float as_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Whether the shapes and attributes are what the operator is defined for.
bool shapes_fit(Op op, const Operands& o, uint32_t vocab) {
  const TensorEntry& a = o.input(0);
  const TensorEntry& out = o.output();
  switch (op) {
    case Op::kEmbed:
      return is_column(o.input(1), StepColumn::kTokenIds) && of_tokens(out) && a.cols == out.cols &&
             a.rows >= vocab;
    case Op::kScale:
    case Op::kSoftCap:
      return same_shape(a, out);
    case Op::kRmsNorm:
      return same_shape(a, out) && divides(o.attribute(2), a.cols) && is_row(o.input(1), o.attribute(2));
    case Op::kLinear:
      return same_rows(a, out) && o.input(1).row_kind == Rows::kFixed && o.input(1).cols == a.cols &&
             o.input(1).rows == out.cols;
    case Op::kBiasAdd:
      return same_shape(a, out) && is_row(o.input(1), a.cols);
    case Op::kRopeTable:
      return is_row(a, out.cols / 2) && out.cols % 2 == 0 && is_column(o.input(1), StepColumn::kPositions) &&
             of_tokens(out);
    case Op::kRope:
      return same_shape(a, out) && of_tokens(a) && of_tokens(o.input(1)) && divides(o.attribute(0), a.cols) &&
             o.input(1).cols % 2 == 0 && o.input(1).cols <= o.attribute(0);
    case Op::kKvAppend:
      return of_tokens(a) && same_shape(a, o.input(1)) && is_kv(o.input(2)) && is_kv(out) &&
             out.offset == o.input(2).offset && out.kv_group == o.input(2).kv_group &&
             same_shape(out, o.input(2)) && out.cols == a.cols && divides(o.attribute(0), a.cols);
    case Op::kAttention:
      return of_tokens(a) && same_shape(a, out) && is_kv(o.input(1)) && divides(o.attribute(0), a.cols) &&
             divides(o.attribute(0), o.input(1).cols) && divides(o.input(1).cols, a.cols);
    case Op::kAdd:
      return same_shape(a, out) && same_shape(o.input(1), out);
    case Op::kGlu:
      return same_shape(a, out) && same_shape(o.input(1), out) && o.attribute(0) <= 2;
    case Op::kGatherRows:
      return of_tokens(a) && is_column(o.input(1), StepColumn::kSampleRows) && of_samples(out) &&
             a.cols == out.cols;
    case Op::kSample:
      return of_samples(a) && a.cols == vocab && is_column(out, StepColumn::kSampled);
    default:
      return false;
  }
}

bool attributes_are_numbers(Op op, const Operands& o) {
  switch (op) {
    case Op::kScale:
      return std::isfinite(as_float(o.attribute(0)));
    case Op::kRmsNorm:
      return std::isfinite(as_float(o.attribute(0))) && std::isfinite(as_float(o.attribute(1)));
    case Op::kRopeTable:
      return std::isfinite(as_float(o.attribute(0)));
    case Op::kAttention:
      return std::isfinite(as_float(o.attribute(2))) && std::isfinite(as_float(o.attribute(3)));
    case Op::kSoftCap:
      return std::isfinite(as_float(o.attribute(0))) && as_float(o.attribute(0)) > 0;
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
    if (tensor.space == Space::kKv && tensor.dtype != DType::kF32 && tensor.dtype != DType::kBf16 &&
        tensor.dtype != DType::kF16) {
      return false;
    }
    if (tensor.space == Space::kTape && (tensor.row_kind != Rows::kFixed || tensor.dtype == DType::kU32))
      return false;
  }
  const TensorEntry& out = o.output();
  return out.space == Space::kArena ? out.dtype == DType::kF32 && out.layout == Layout::kRowMajor
                                    : out.space != Space::kTape;
}

// The row tiles of the packet are those of its output; of the tokens where the output is the cache.
Rows row_kind_of(Op op, const Operands& o) {
  return op == Op::kKvAppend ? Rows::kTokens : o.output().row_kind;
}

Status check_columns(const Operands& o) {
  const Packet& packet = o.packet;
  const uint64_t last = packet.col_first + uint64_t{packet.col_count - 1u} * packet.col_stride;
  if (packet.col_count == 0 || packet.tile_cols == 0 || (packet.col_count > 1 && packet.col_stride == 0) ||
      last * packet.tile_cols >= o.output().cols) {
    return wrong(fmt::format("column tiles {}, +{} x {} of {} columns are outside an output of {} columns",
                             packet.col_first, packet.col_count, packet.col_stride, packet.tile_cols,
                             o.output().cols));
  }
  return {};
}

}  // namespace

Status check_operator(const BundleParts& parts, const ProgramView& program, const Packet& packet) {
  const Op op = static_cast<Op>(packet.body);
  if (is_protocol(op)) return {};
  const uint32_t inputs = n_inputs(op);
  PLOW_CHECK(inputs != kNotAnOperator, "operator {} has no rule here", op_name(op));
  for (uint32_t i = 0; i < kPacketOperands; ++i) {
    if ((i <= inputs) != (packet.operand[i] != kNoTensor))
      return wrong(fmt::format("it has {} inputs and an output", inputs));
  }
  const Operands operands{program, packet, inputs};
  if (!shapes_fit(op, operands, parts.header->vocab) || !attributes_are_numbers(op, operands)) {
    return wrong("the shapes of its operands and its attributes do not fit its definition");
  }
  if (!types_fit(operands))
    return wrong("an operand has a dtype or lies in a memory that its definition does not have");
  if (static_cast<Rows>(packet.row_kind) != row_kind_of(op, operands)) {
    return wrong(fmt::format("its row tiles count {}, those of its output {}",
                             rows_name(static_cast<Rows>(packet.row_kind)),
                             rows_name(row_kind_of(op, operands))));
  }
  return check_columns(operands);
}

}  // namespace plow
