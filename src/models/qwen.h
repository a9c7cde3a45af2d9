// What Qwen2 and Qwen3 share.
#pragma once

#include "models/decoder.h"

namespace plow {

// Windows: only where use_sliding_window is true; then in the layers that layer_types says, or, without it,
// in those from max_window_layers on (28 where it is absent). Source: transformers' Qwen2Config, Qwen3Config
// (5.24).
Status read_qwen_windows(const JsonFields& config, DecoderSpec& spec);

}  // namespace plow
