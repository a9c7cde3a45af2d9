// glu: out = act(gate) * up. Activation 0: silu, x / (1 + e^-x); 1: gelu in its tanh form; 2: gelu by the
// normal distribution.
#pragma once

#include "interp/vector_math.h"
#include "ops/row_wise_body.h"

namespace plow::dev {

enum class GluActivation : uint32_t { kSilu = 0, kGeluTanh = 1, kGeluErf = 2 };

// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 (Hendrycks and Gimpel). (1 + tanh y) / 2 is the logistic
// function of 2 y, which does not cancel when y is far below 0.
template <class I>
PLOW_DEVICE typename I::Vec gelu_tanh(typename I::Vec x) {
  const typename I::Vec cubic = I::fma(I::mul(x, x), I::set(0.044715f), I::set(1.0f));
  const typename I::Vec y = I::mul(I::mul(x, cubic), I::set(0x1.988454p+0f));  // 2 sqrt(2 / pi)
  return I::mul(x, logistic<I>(y));
}

// Calls f(act) with the activation as a function of a Vec.
template <class I, class F>
PLOW_DEVICE void with_activation(GluActivation activation, const F& f) {
  using Vec = typename I::Vec;
  switch (activation) {
    case GluActivation::kSilu:
      return f([](Vec x) { return I::mul(x, logistic<I>(x)); });
    case GluActivation::kGeluTanh:
      return f([](Vec x) { return gelu_tanh<I>(x); });
    case GluActivation::kGeluErf:
      return f([](Vec x) { return I::mul(x, normal_cdf<I>(x)); });
  }
}

template <class I>
PLOW_DEVICE void glu_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  using Vec = typename I::Vec;
  const TensorEntry& up = operand(ctx, packet, 1);
  with_activation<I>(static_cast<GluActivation>(packet.immediate[0]), [&](const auto& act) {
    map_rows<I>(ctx, packet, row_tile, 2, [&](Vec x, uint32_t row, uint32_t c, uint32_t n) {
      return I::mul(act(x), load_lanes<I>(arena_row(ctx, up, row) + c, n));
    });
  });
}

}  // namespace plow::dev
