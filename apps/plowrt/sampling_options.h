// The sampling parameters as a person gives them: on the command line, or with /set in a chat.
#pragma once

#include "abi/step.h"
#include "base/error.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace plow {

// What is not given is the checkpoint's recommendation.
struct SamplingOptions {
  std::optional<double> temperature;  // 0: always the likeliest token
  std::optional<uint32_t> top_k;
  std::optional<double> top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<uint64_t> seed;  // not given: another for each run
};

SamplingParams apply_sampling(const SamplingParams& recommended, const SamplingOptions& options);

// "top-p", "0.9". Errors (kUsage): no such parameter, or a value out of its range; the message says what is
// allowed.
Status set_sampling(SamplingOptions& options, std::string_view name, std::string_view value);

}  // namespace plow
