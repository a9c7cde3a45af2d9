// One body for NVIDIA GPUs, compiled once an operator and ISA with PLOW_NVIDIA_ISA its namespace, PLOW_BODY_HEADER
// where the body is written, and PLOW_BODY and PLOW_BODY_TEMPLATE its names here and there.
// clang-format off: it says what PLOW_DEVICE and its like are before interp/device.h would
#include "isa/nvidia/team.cuh"
// clang-format on
#include "isa/nvidia/body.cuh"
#include PLOW_BODY_HEADER

namespace plow::nvidia {

PLOW_KEEPS_FEW_REGISTERS
__device__ void PLOW_BODY(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  dev::PLOW_BODY_TEMPLATE<Team>(ctx, packet, row_tile);
}

}  // namespace plow::nvidia
