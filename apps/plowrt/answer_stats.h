// What an answer took, in figures and as a line.
#pragma once

#include "plowrt/session.h"

#include <string>

namespace plow {

struct AnswerStats {
  uint32_t prompt_tokens = 0, reused_tokens = 0, generated_tokens = 0;
  double prompt_seconds = 0, decode_seconds = 0;
  double prompt_rate = 0, decode_rate = 0;  // tokens a second; 0 when nothing was measured
};
AnswerStats answer_stats(const Session::Answer& answer);

// "12 prompt tokens at 310.2/s, 40 tokens at 41.3/s".
std::string stats_line(const AnswerStats& stats);

// "stop", "length", "context" or "interrupted".
const char* finish_reason(StopReason reason);

}  // namespace plow
