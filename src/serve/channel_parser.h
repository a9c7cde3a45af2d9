// Answers that consist of marked parts: OpenAI's Harmony format (its guide "OpenAI harmony response format":
// messages with a channel, calls in the commentary channel) and that of Gemma 4's chat template (a channel of
// thoughts, calls in a notation of its own). An answer's text is taken apart while it comes.
//
// The marks are control tokens, so the text must have them spelled out.
#pragma once

#include "serve/tool_calls.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

// Whether answers of this dialect are in marked parts.
constexpr bool has_channels(ToolDialect dialect) {
  return dialect == ToolDialect::kHarmony || dialect == ToolDialect::kGemma;
}

// What is told of a part depends on no cut of the text into pieces, but for how soon it is told.
class ChannelParser {
 public:
  // REQUIRES a dialect with channels.
  explicit ChannelParser(ToolDialect dialect)
      : dialect_(dialect), state_(dialect == ToolDialect::kHarmony ? State::kHeader : State::kText) {}
  std::vector<ToolEvent> push(std::string_view piece);
  // What was held back when no more comes. A call that was cut in Gemma's notation is dropped.
  std::vector<ToolEvent> finish();
  bool in_thought() const { return state_ == State::kThought; }

 private:
  enum class State : uint8_t {
    kHeader,   // Harmony: in front of a message
    kBetween,  // Harmony: behind one
    kText,
    kThoughtName,  // Gemma: the line that names the channel
    kThought,
    kCall,  // Harmony: its arguments come; Gemma: it is held until it is whole
  };
  bool step(std::vector<ToolEvent>& events);  // false: more text is needed
  bool step_header(std::vector<ToolEvent>& events);
  bool step_gemma(std::vector<ToolEvent>& events);
  void tell(std::vector<ToolEvent>& events, std::string_view text);
  void end_call(std::vector<ToolEvent>& events);

  const ToolDialect dialect_;
  State state_;
  bool has_arguments_ = false;  // of the call
  std::string held_;
};

// The JSON text of a call's arguments in Gemma's notation, {key:value,...} with strings between <|"|>; null
// when it is no such thing or nested too deep.
std::optional<std::string> json_of_gemma(std::string_view arguments);

}  // namespace plow
