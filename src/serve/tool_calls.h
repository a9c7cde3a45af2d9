// Tool calls as models write them: which way a model's chat template teaches it, and an answer's text taken
// apart into text and calls while it comes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

enum class ToolDialect : uint8_t {
  kNone,     // the template knows no tools
  kHermes,   // <tool_call>{"name": ..., "arguments": {...}}</tool_call>, as Hermes and Qwen write it
  kLlama3,   // {"name": ..., "parameters": {...}}, several with "; " between them, instead of text
  kHarmony,  // messages in channels, as GPT-OSS writes them (channel_parser.h)
  kGemma,    // marked parts, calls in a notation of its own, as Gemma 4 writes them (channel_parser.h)
};
ToolDialect tool_dialect_of(std::string_view template_source);
// The key of a call's arguments.
constexpr const char* arguments_key(ToolDialect dialect) {
  return dialect == ToolDialect::kLlama3 ? "parameters" : "arguments";
}

constexpr std::string_view kCallTag = "<tool_call>", kCallEndTag = "</tool_call>";

struct ToolEvent {
  enum class Kind : uint8_t {
    kText,
    kThought,    // of ChannelParser only
    kCall,       // one begins; the text is the function's name
    kArguments,  // of the call that began last; the JSON text of all of its pieces is an object
  };
  Kind kind;
  std::string text;
  bool operator==(const ToolEvent&) const = default;
};

// Reads the JSON object of one call byte by byte.
class CallReader {
 public:
  explicit CallReader(std::string_view arguments) : arguments_(arguments) {}
  // Takes text up to the end of the call; how many bytes it took.
  size_t feed(std::string_view text, std::vector<ToolEvent>& events);
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State : uint8_t { kOpen, kKey, kInKey, kColon, kValue, kInValue, kNext, kDone };
  bool take(char c, std::vector<ToolEvent>& events);  // false: the byte is not the value's any more
  bool take_value(char c, std::vector<ToolEvent>& events);
  void end_value(std::vector<ToolEvent>& events);

  std::string_view arguments_;
  State state_ = State::kOpen;
  std::string key_, value_;
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false, has_arguments_ = false;
};

// REQUIRES text that the grammar of tool_request.h allows, or a beginning of such.
class ToolCallParser {
 public:
  explicit ToolCallParser(ToolDialect dialect) : dialect_(dialect) {}
  std::vector<ToolEvent> push(std::string_view piece);
  // What was held back when no more comes.
  std::vector<ToolEvent> finish();
  uint32_t n_calls() const { return n_calls_; }

 private:
  bool step(std::vector<ToolEvent>& events);  // false: more text is needed
  bool step_text(std::vector<ToolEvent>& events);
  void begin_call();

  const ToolDialect dialect_;
  std::optional<CallReader> call_;  // within one
  bool begun_ = false;              // text or a call was told
  bool closing_ = false;            // behind a call: its end tag, or what stands between two calls, comes
  std::string held_;
  uint32_t n_calls_ = 0;
};

// Splits off the thoughts that some models write between <think> and </think> in front of their answer.
class ThoughtSplitter {
 public:
  // `inside`: the prompt ended with <think>.
  explicit ThoughtSplitter(bool inside) : state_(inside ? State::kInside : State::kBefore) {}
  struct Piece {
    std::string thought, text;
  };
  Piece push(std::string_view piece);
  Piece finish();
  bool inside() const { return state_ == State::kInside; }

 private:
  enum class State : uint8_t { kBefore, kInside, kBehind, kAfter };
  State state_;
  std::string held_;
};

// The bytes at the end of `text` that may be the beginning of `tag`.
size_t begun_tag(std::string_view text, std::string_view tag);

}  // namespace plow
