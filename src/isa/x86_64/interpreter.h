// The x86-64 interpreter for those who run it: which instruction sets it was built for and this machine has,
// and its entry points.
#pragma once

#include "base/error.h"
#include "interp/context.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

// What a worker's code is compiled for. Avx2 and Avx512 give the same bits. Avx512Bf16 rounds the activations
// of products with bf16 weights to bf16, so it is less precise and never chosen unless it is asked for.
enum class IsaLevel : uint8_t { kAuto, kAvx2, kAvx512, kAvx512Bf16 };

const char* isa_level_name(IsaLevel level);               // "auto", "avx2", "avx512", "avx512-bf16"
Result<IsaLevel> parse_isa_level(std::string_view text);  // of these names; kUsage otherwise

// The levels that this processor (and its operating system) can run, lowest first; empty when not even AVX2
// is there.
std::vector<IsaLevel> available_isa_levels();

// kAuto becomes the best level with exact products. Errors (kDevice): the level asked for is not available;
// the message lists those that are.
Result<IsaLevel> choose_isa_level(IsaLevel wanted);

struct Interpreter {
  IsaLevel level;
  // Runs the steps of worker.device->step; false when they were given up (Control::abort).
  bool (*run_steps)(Worker& worker);
  // One body, for tests and benchmarks.
  void (*run_body)(const BodyContext& ctx, const Packet& packet, uint32_t row_tile);
  // 16 values of exp (0), tanh (1), logistic (2) or normal_cdf (3) of interp/vector_math.h, for tests.
  void (*vector_math)(uint32_t function, const float* x, float* out);
};

// REQUIRES a level of available_isa_levels().
const Interpreter& x86_64_interpreter(IsaLevel level);

// Why this interpreter cannot run the packet: no body of that number or variant, an operand of a memory,
// dtype or layout that the body does not read, a head that is too wide. Empty when it can. REQUIRES a packet
// that BundleFile has checked.
std::string unsupported_reason(const Packet& packet, const TensorEntry* tensors);

// Bytes of scratch that a worker needs for the packet at any level, when a row tile has up to `row_tile`
// rows.
uint64_t body_scratch_bytes(const Packet& packet, const TensorEntry* tensors, uint32_t row_tile);

}  // namespace plow
