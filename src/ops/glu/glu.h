// The activations of glu, as its attribute numbers them.
#pragma once

#include <stdint.h>

namespace plow {

enum class Activation : uint32_t {
  kSilu = 0,      // x / (1 + exp(-x))
  kGeluTanh = 1,  // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  kGeluErf = 2,   // 0.5 x (1 + erf(x / sqrt(2)))
};

}  // namespace plow
