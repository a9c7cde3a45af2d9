#include "isa/gpu/support.h"

#include "interp/near.h"
#include "isa/gpu/geometry.h"
#include "ops/attention/team_body.h"
#include "ops/norm_rope/team_body.h"
#include "ops/sample/team_body.h"

#include <fmt/format.h>

namespace plow::gpu {
namespace {

static_assert(kAttentionUnit == kKvBlockTokens, "a unit of attention's pass is a block of the cache");
static_assert(kMaxHeadDim == dev::kTeamHeadDim && kMaxHeadDim == dev::kTurnedHead);
#define PLOW_GPU_ISA(Name, geometry)                                                                  \
  static_assert(dev::attention_team_bytes(geometry::kLanes, geometry::kThreads / geometry::kLanes) +  \
                    dev::kNearBytes <=                                                                \
                geometry::kTeamBytes);                                                                \
  static_assert(dev::sample_team_bytes() + dev::kNearBytes <= geometry::kTeamBytes);                  \
  static_assert(geometry::kThreads <= dev::kMostCandidates);                                          \
  static_assert(dev::norm_rope_team_bytes(geometry::kThreads / geometry::kLanes) + dev::kNearBytes <= \
                geometry::kTeamBytes);
PLOW_GPU_ISAS(PLOW_GPU_ISA)
#undef PLOW_GPU_ISA

// Bodies load and store 16 bytes at once.
bool aligned(uint64_t bytes) { return bytes % 16 == 0; }

// How an operand must lie, by its memory. `matrix`: the operator reads it as one.
const char* misfit(const TensorEntry& t, bool matrix) {
  const bool narrow = t.dtype == DType::kF32 || t.dtype == DType::kBf16 || t.dtype == DType::kF16;
  switch (t.space) {
    case Space::kArena:
      return t.dtype == DType::kF32 && t.layout == Layout::kRowMajor && aligned(t.offset) &&
                     aligned(t.row_stride)
                 ? nullptr
                 : "an f32 activation, row-major, whose rows begin at multiples of 16 bytes";
    case Space::kTape:
      if (matrix)
        return narrow && t.layout == Layout::kAtoms8x128 && aligned(t.offset)
                   ? nullptr
                   : "an f32, bf16 or f16 matrix in atoms8x128 layout";
      return t.layout == Layout::kRowMajor && (narrow || t.dtype == DType::kF64) && aligned(t.offset)
                 ? nullptr
                 : "a row-major f32, bf16, f16 or f64 row that begins at a multiple of 16 bytes";
    case Space::kKv:
      return t.layout == Layout::kKvRows && (t.dtype == DType::kF32 || t.dtype == DType::kBf16) &&
                     aligned(t.offset)
                 ? nullptr
                 : "f32 or bf16 in kv-rows layout";
    case Space::kStep:
      return nullptr;
  }
  return "in a known memory";
}

}  // namespace

bool has_body(Op op) {
  switch (op) {
#define PLOW_TEAM_BODY(Name, text) case Op::k##Name:
#include "ops/team_bodies.def"
    return true;
    default:
      return is_protocol(op);
  }
}

std::string unsupported_reason(const Packet& packet, const TensorEntry* tensors) {
  const Op op = static_cast<Op>(packet.body);
  const char* name = op_name(op);
  if (name == nullptr || !has_body(op))
    return fmt::format("no body for {}", name != nullptr ? name : std::to_string(packet.body));
  if (packet.variant != 0) return fmt::format("{} has no variant {}", name, packet.variant);
  for (uint32_t i = 0; i < kPacketOperands && packet.operand[i] != kNoTensor; ++i) {
    const bool matrix = (matrix_inputs(op) >> i & 1) != 0;
    if (const char* expected = misfit(tensors[packet.operand[i]], matrix))
      return fmt::format("{}: operand {} must be {}", name, i, expected);
  }
  const uint32_t head_dim = packet.immediate[0];
  const bool narrow = attends(op) &&
                      (head_dim % dev::kLaneColumns != 0 || tensors[packet.operand[1]].dtype == DType::kF32);
  if (attends(op) && (head_dim % 2 != 0 || head_dim > (narrow ? dev::kTeamNarrowHeadDim : kMaxHeadDim))) {
    return fmt::format(
        "{}: a head has {} columns; even numbers up to {}, and with a bf16 cache multiples of {} up to {}, "
        "are supported",
        name, head_dim, dev::kTeamNarrowHeadDim, dev::kLaneColumns, kMaxHeadDim);
  }
  // Whole units of 16 bytes are read of queries.
  const TensorEntry& first = tensors[packet.operand[0]];
  if (attends(op) && (first.offset % 16 != 0 || first.row_stride % 16 != 0))
    return fmt::format("{}: operand 0 must have rows that begin at multiples of 16 bytes", name);
  if ((op == Op::kNormRope || op == Op::kNormRopeKvAppend) && head_dim > kMaxHeadDim)
    return fmt::format("{}: a head has {} columns; up to {} are supported", name, head_dim, kMaxHeadDim);
  return {};
}

uint64_t body_scratch_bytes(const Packet& packet, const TensorEntry* tensors) {
  return static_cast<Op>(packet.body) == Op::kSample
             ? dev::sample_team_scratch_bytes(tensors[packet.operand[0]].cols)
             : 0;
}

}  // namespace plow::gpu
