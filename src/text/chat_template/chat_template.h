// Chat templates: the Jinja programs that published checkpoints carry (`chat_template` in
// tokenizer_config.json, the GGUF key tokenizer.chat_template) and that turn a conversation into the text
// that the model reads.
//
// The language is that of jinja2 3.1 in the environment that transformers builds for chat templates
// (transformers.utils.chat_template_utils): ImmutableSandboxedEnvironment with trim_blocks, lstrip_blocks,
// break and continue, the `generation` tag, and its own tojson, raise_exception, strftime_now, dict and
// namespace. Values behave as Python's do, with three differences that are errors here: integers beyond 64
// bits, complex numbers, and whatever passes RenderLimits. Templates cannot load other templates (include,
// import, extends, block) and loops cannot be recursive.
//
// Provenance. Every byte of a rendered prompt is known to be the template's own text or to come from the
// conversation. The rule for a tokenizer: tokenize the concatenation, but let a control token match only
// where all its bytes are trusted. Then no text of a message, tool or document can become a control token.
// Provenance follows every string operation byte for byte; what is computed from data in a way that has no
// byte to point at (a number, say) is data.
#pragma once

#include "base/error.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

namespace jinja {
struct Program;
}

// Wall-clock time of the caller, for templates that print the date. The library never reads the clock.
struct LocalTime {
  int year = 1970;
  int month = 1;  // 1 to 12
  int day = 1;    // 1 to 31
  int hour = 0;
  int minute = 0;
  int second = 0;
  int microsecond = 0;
};

// What one rendering may use; beyond it rendering fails with one error. The defaults are far above what the
// longest conversations need (a template spends some hundred steps a message) and end a hostile one within
// about a second.
struct RenderLimits {
  uint64_t max_steps = 50'000'000;  // nodes evaluated, plus one for each 16 bytes or items touched
  uint64_t max_memory_bytes = uint64_t{512} << 20;  // of all values made, whether still in use or not
  uint64_t max_string_bytes = uint64_t{64} << 20;   // of one string, the prompt included
  uint32_t max_depth = 900;                         // nested evaluation: macros, blocks, expressions, data
};

// What a template is rendered with.
struct ChatInput {
  // Array of objects, at least one. As transformers does, keys whose value is null are dropped from each
  // message, and reasoning given as `reasoning_content`, `thinking` or `reasoning` is offered under the first
  // two names.
  boost::json::value messages;
  boost::json::value tools;      // array or null
  boost::json::value documents;  // array of objects or null
  bool add_generation_prompt = true;
  // bos_token, eos_token and so on: strings that the template may print as control tokens.
  boost::json::object special_tokens;
  // Further variables of the request (chat_template_kwargs: enable_thinking, reasoning_effort, ...). Their
  // strings are data. They replace special tokens of the same name.
  boost::json::object variables;
  // For strftime_now; without it a template that asks for the time fails.
  std::optional<LocalTime> now;
  // The values of "role" in a message that count as template text, because templates build control tokens
  // from them
  // ("<|" + role + "|>"). Any other role is data.
  std::vector<std::string> trusted_roles = {"system",   "developer", "user",  "assistant",   "tool",
                                            "function", "ipython",   "model", "environment", "observation"};
};

// A piece of the prompt, never empty. Neighbours differ in `trusted`.
struct PromptSegment {
  std::string text;      // UTF-8
  bool trusted = false;  // the template's own text (or special tokens, or a trusted role)
};

// A compiled template. Immutable: any number of threads may render it at once.
class ChatTemplate {
 public:
  // Errors (kInput, with the line): not UTF-8, a syntax error, an unknown tag, filter or test, a construct
  // that needs other templates, nesting that is too deep, more than 1 MiB of source.
  static Result<ChatTemplate> compile(std::string_view source);

  ChatTemplate(ChatTemplate&& other) noexcept;
  ChatTemplate& operator=(ChatTemplate&& other) noexcept;
  ChatTemplate(const ChatTemplate&) = delete;
  ~ChatTemplate();

  // The prompt in pieces. Errors (kInput, with the line in the template): what jinja2 would raise,
  // raise_exception of the template, input of the wrong shape, a limit reached.
  Result<std::vector<PromptSegment>> render_segments(const ChatInput& input,
                                                     const RenderLimits& limits = {}) const;

  // The concatenation of the segments.
  Result<std::string> render(const ChatInput& input, const RenderLimits& limits = {}) const;

 private:
  explicit ChatTemplate(std::unique_ptr<const jinja::Program> program);

  std::unique_ptr<const jinja::Program> program_;
};

}  // namespace plow
