#include "isa/x86_64/prims_avx512.h"
#include "isa/x86_64/variant.h"

namespace plow::x86_64 {

// Declared in interpreter.cpp.
bool run_steps_Avx512Bf16(Worker& worker);
void run_body_Avx512Bf16(const BodyContext& ctx, const Packet& packet, uint32_t row_tile);
void vector_math_Avx512Bf16(uint32_t function, const float* x, float* out);

}  // namespace plow::x86_64

PLOW_X86_64_VARIANT(Avx512Bf16)
