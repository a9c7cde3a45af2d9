// What an answer consists of, before it has the shape of an API.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plow {

struct TokenLogprob {
  std::string text;   // for people
  std::string bytes;  // that the token stands for; not always UTF-8
  float logprob = 0;
  bool scored = true;             // false: a prompt's first token, which has no probability
  std::vector<TokenLogprob> top;  // the likeliest tokens in its place, when they were asked for
};

struct Usage {
  uint64_t prompt_tokens = 0, completion_tokens = 0;
  std::optional<uint64_t> reasoning_tokens = {};  // of the completion's; of models that think
  uint64_t cached_tokens = 0;  // of the prompt's: not computed, since they were in the cache
};

// A call of a tool, or a piece of one.
struct ToolCallPart {
  uint32_t index = 0;
  bool begins = false;   // id and name are said once
  std::string id, name;  // when it begins
  std::string arguments;
};

// A piece of one choice, or all of it.
struct ChoicePart {
  uint32_t index = 0;
  std::string text;
  std::string reasoning;  // thoughts before the text
  std::vector<ToolCallPart> calls;
  bool with_logprobs = false;
  std::vector<TokenLogprob> logprobs;
  uint64_t text_offset = 0;  // of a completion with logprobs: bytes of the choice's text before this part
  bool with_token_ids = false;
  std::vector<uint32_t> token_ids;
  const char* finish_reason = nullptr;     // null: the choice goes on
  std::optional<std::string> stop_string;  // that ended it
};

}  // namespace plow
