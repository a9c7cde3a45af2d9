// One compilation of the interpreter: each variant_*.cpp is compiled with flags of its own and defines its
// entry points with this. Everything compiled there has internal linkage or its primitives' type in its name
// (interp/device.h says why).
#pragma once

#include "interp/loop.h"
#include "interp/vector_math.h"
#include "ops/bodies.h"

namespace plow::x86_64 {

// A function of interp/vector_math.h over 16 floats, for tests.
template <class I, class F>
PLOW_DEVICE void apply(const float* x, float* out, F function) {
  I::store(out, function(I::load(x)));
}

template <class I>
PLOW_DEVICE void run_vector_math(uint32_t function, const float* x, float* out) {
  using Vec = typename I::Vec;
  switch (function) {
    case 0:
      return apply<I>(x, out, [](Vec v) { return dev::exp<I>(v); });
    case 1:
      return apply<I>(x, out, [](Vec v) { return dev::tanh<I>(v); });
    case 2:
      return apply<I>(x, out, [](Vec v) { return dev::logistic<I>(v); });
    default:
      return apply<I>(x, out, [](Vec v) { return dev::normal_cdf<I>(v); });
  }
}

}  // namespace plow::x86_64

#define PLOW_X86_64_VARIANT(Name)                                                             \
  namespace plow::x86_64 {                                                                    \
  bool run_steps_##Name(Worker& worker) { return dev::run_steps<Name, dev::Bodies>(worker); } \
  void run_body_##Name(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {     \
    dev::Bodies::run<Name>(ctx, packet, row_tile);                                            \
  }                                                                                           \
  void vector_math_##Name(uint32_t function, const float* x, float* out) {                    \
    run_vector_math<Name>(function, x, out);                                                  \
  }                                                                                           \
  }
