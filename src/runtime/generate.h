// Text of one sequence: its prompt in chunks, then token after token.
#pragma once

#include "runtime/engine.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace plow {

struct GenerateOptions {
  uint32_t max_tokens = 256;                    // of the answer; 0 only reads the prompt
  SamplingParams sampling = greedy_sampling();  // prompt_tokens is set by generate
  std::vector<uint32_t> stop_ids;               // a token of these ends the answer and is not part of it
  uint32_t chunk_rows = 0;     // rows of a prompt's chunk; 0: as many as the largest program takes
  uint32_t steps_at_once = 1;  // steps that run without the host: 1 .. kMaxSteps
};

enum class StopReason { kStopToken, kMaxTokens, kContext, kCallback };

struct Generated {
  std::vector<uint32_t> tokens;
  std::vector<float> logprobs;
  StopReason reason = StopReason::kMaxTokens;
  uint32_t last_token = 0;  // the last that was picked, a stop token perhaps; it was not fed
  uint64_t prompt_ns = 0;   // until the first token was there
  uint64_t decode_ns = 0;   // from then on
};

// Called for each token as it comes; false ends the answer after this token.
using TokenCallback = std::function<bool(uint32_t token, float logprob)>;

// Continues the sequence of `slot` with `prompt` (at least one token) and an answer. Afterwards the slot's
// sequence is what it was, the prompt, and what was picked except Generated::last_token: a chat goes on by
// submitting that token with the next turn. Errors: as Engine::step; kDoesNotFit when the prompt leaves no
// room in the context.
Result<Generated> generate(Engine& engine, uint32_t slot, std::span<const uint32_t> prompt,
                           const GenerateOptions& options, const TokenCallback& on_token = {});

}  // namespace plow
