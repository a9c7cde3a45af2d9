#include "runtime/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace plow {
namespace {

uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// Feeds the prompt; returns the token that its last row picks (none when no answer is wanted).
Result<std::vector<StepToken>> feed_prompt(Engine& engine, uint32_t slot, std::span<const uint32_t> prompt,
                                           const GenerateOptions& options, const SamplingParams& sampling) {
  const uint32_t chunk =
      options.chunk_rows == 0 ? engine.max_rows() : std::min(options.chunk_rows, engine.max_rows());
  StepResult result;
  for (size_t first = 0; first < prompt.size(); first += chunk) {
    const auto tokens = prompt.subspan(first, std::min<size_t>(chunk, prompt.size() - first));
    const uint32_t last_row = static_cast<uint32_t>(tokens.size()) - 1;
    const bool last = first + tokens.size() == prompt.size() && options.max_tokens > 0;
    const StepRequest request{slot, tokens, last ? std::span(&last_row, 1) : std::span<const uint32_t>(),
                              sampling};
    PLOW_TRY(result, engine.step(std::span(&request, 1)));
  }
  return result.tokens;
}

// Takes a token into the answer; whether the answer goes on.
bool accept(const StepToken& token, const GenerateOptions& options, const TokenCallback& on_token,
            Generated& answer) {
  answer.last_token = token.token;
  if (std::find(options.stop_ids.begin(), options.stop_ids.end(), token.token) != options.stop_ids.end()) {
    answer.reason = StopReason::kStopToken;
    return false;
  }
  answer.tokens.push_back(token.token);
  answer.logprobs.push_back(token.logprob);
  if (on_token && !on_token(token.token, token.logprob)) {
    answer.reason = StopReason::kCallback;
    return false;
  }
  answer.reason = StopReason::kMaxTokens;
  return answer.tokens.size() < options.max_tokens;
}

}  // namespace

Result<Generated> generate(Engine& engine, uint32_t slot, std::span<const uint32_t> prompt,
                           const GenerateOptions& options, const TokenCallback& on_token) {
  if (prompt.empty()) return usage_error("A prompt needs at least one token.");
  const uint64_t start = engine.position(slot);
  if (start + prompt.size() > engine.context()) {
    return does_not_fit(
        fmt::format("The prompt has {} tokens, {} are there before it, and the context is {}. Shorten it, or "
                    "compile the bundle "
                    "for a longer context.",
                    prompt.size(), start, engine.context()));
  }
  SamplingParams sampling = options.sampling;
  sampling.prompt_tokens = static_cast<uint32_t>(start + prompt.size());
  Generated answer;
  const uint64_t began = now_ns();
  PLOW_TRY(std::vector<StepToken> picked, feed_prompt(engine, slot, prompt, options, sampling));
  const uint64_t prompt_done = now_ns();
  answer.prompt_ns = prompt_done - began;

  bool more = !picked.empty() && accept(picked[0], options, on_token, answer);
  while (more) {
    const uint32_t position = engine.position(slot);
    const uint32_t room = engine.context() - position;
    if (room == 0) {
      answer.reason = StopReason::kContext;
      break;
    }
    const auto wanted = static_cast<uint32_t>(options.max_tokens - answer.tokens.size());
    const uint32_t row = 0;
    const StepRequest request{slot, std::span(&answer.last_token, 1), std::span(&row, 1), sampling};
    PLOW_TRY(const StepResult result,
             engine.step(std::span(&request, 1), {std::min({options.steps_at_once, wanted, room}), false}));
    uint32_t fed = position;
    for (const StepToken& token : result.tokens) {
      ++fed;  // the token before this one was fed
      more = accept(token, options, on_token, answer);
      if (!more) break;
    }
    PLOW_TRY_STATUS(engine.rewind(slot, fed));  // what was fed after the end of the answer
  }
  answer.decode_ns = now_ns() - prompt_done;
  return answer;
}

}  // namespace plow
