#include "plowrt/answer_stats.h"

#include <fmt/format.h>

namespace plow {

AnswerStats answer_stats(const Session::Answer& answer) {
  const Generated& g = answer.generated;
  AnswerStats stats;
  stats.prompt_tokens = answer.prompt_tokens;
  stats.reused_tokens = answer.reused_tokens;
  stats.generated_tokens = static_cast<uint32_t>(g.tokens.size());
  stats.prompt_seconds = static_cast<double>(g.prompt_ns) * 1e-9;
  stats.decode_seconds = static_cast<double>(g.decode_ns) * 1e-9;
  // The prompt's last row picked the first token; a stop token took a step as well.
  const double picked = stats.generated_tokens + (g.reason == StopReason::kStopToken ? 1.0 : 0.0);
  const double computed = stats.prompt_tokens - stats.reused_tokens;
  if (stats.prompt_seconds > 0) stats.prompt_rate = computed / stats.prompt_seconds;
  if (stats.decode_seconds > 0 && picked > 1) stats.decode_rate = (picked - 1) / stats.decode_seconds;
  return stats;
}

std::string stats_line(const AnswerStats& stats) {
  std::string line = fmt::format("{} prompt tokens", stats.prompt_tokens);
  if (stats.reused_tokens > 0) line += fmt::format(" ({} from the cache)", stats.reused_tokens);
  line += fmt::format(" at {:.1f}/s, {} tokens", stats.prompt_rate, stats.generated_tokens);
  if (stats.decode_rate > 0) line += fmt::format(" at {:.1f}/s", stats.decode_rate);
  return line;
}

const char* finish_reason(StopReason reason) {
  switch (reason) {
    case StopReason::kStopToken:
      return "stop";
    case StopReason::kMaxTokens:
      return "length";
    case StopReason::kContext:
      return "context";
    case StopReason::kCallback:
      return "interrupted";
  }
  return "";
}

}  // namespace plow
