#include "serve/answer_format.h"

#include "base/json_string.h"
#include "serve/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace plow {
namespace {

template <class Items, class Append>
void append_array(std::string& out, const Items& items, Append append) {
  out += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ',';
    first = false;
    append(item);
  }
  out += ']';
}

void append_usage(std::string& out, const Usage& usage) {
  fmt::format_to(std::back_inserter(out),
                 "\"usage\":{{\"prompt_tokens\":{},\"completion_tokens\":{},\"total_tokens\":{},"
                 "\"prompt_tokens_details\":{{\"cached_tokens\":{}}}",
                 usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens + usage.completion_tokens,
                 usage.cached_tokens);
  if (usage.reasoning_tokens) {
    fmt::format_to(std::back_inserter(out), ",\"completion_tokens_details\":{{\"reasoning_tokens\":{}}}",
                   *usage.reasoning_tokens);
  }
  out += '}';
}

// Under both names that clients read.
void append_reasoning(std::string& out, const std::string& reasoning) {
  out += "\"reasoning_content\":";
  append_json_string(out, reasoning);
  out += ",\"reasoning\":";
  append_json_string(out, reasoning);
}

// Pieces of calls have an index, whole ones do not.
void append_calls(std::string& out, const std::vector<ToolCallPart>& calls, bool pieces) {
  out += "\"tool_calls\":";
  append_array(out, calls, [&](const ToolCallPart& call) {
    out += '{';
    if (pieces) fmt::format_to(std::back_inserter(out), "\"index\":{},", call.index);
    if (call.begins) {
      out += "\"id\":";
      append_json_string(out, call.id);
      out += ",\"type\":\"function\",";
    }
    out += "\"function\":{";
    if (call.begins) {
      out += "\"name\":";
      append_json_string(out, call.name);
      out += ',';
    }
    out += "\"arguments\":";
    append_json_string(out, call.arguments);
    out += "}}";
  });
}

// What a chat's delta has of a part; nothing when nothing is left to say.
void append_delta(std::string& out, const ChoicePart& part) {
  out += "\"delta\":{";
  const size_t begin = out.size();
  const auto next = [&] {
    if (out.size() > begin) out += ',';
  };
  if (!part.reasoning.empty()) append_reasoning(out, part.reasoning);
  const bool silent = part.reasoning.empty() && part.calls.empty() && part.finish_reason == nullptr;
  if (!part.text.empty() || silent) {
    next();
    out += "\"content\":";
    append_json_string(out, part.text);
  }
  if (!part.calls.empty()) {
    next();
    append_calls(out, part.calls, true);
  }
  out += '}';
}

void append_message(std::string& out, const ChoicePart& part) {
  out += "\"message\":{\"role\":\"assistant\",\"content\":";
  if (part.text.empty() && !part.calls.empty()) {
    out += "null";
  } else {
    append_json_string(out, part.text);
  }
  if (!part.reasoning.empty()) {
    out += ',';
    append_reasoning(out, part.reasoning);
  }
  if (!part.calls.empty()) {
    out += ',';
    append_calls(out, part.calls, false);
  }
  out += ",\"refusal\":null}";
}

// "token": ..., "logprob": ..., "bytes": [...]
void append_token(std::string& out, const TokenLogprob& token) {
  out += "\"token\":";
  append_json_string(out, token.text);
  out += ",\"logprob\":";
  append_json_number(out, token.logprob);
  out += ",\"bytes\":";
  append_array(out, token.bytes, [&](char byte) {
    fmt::format_to(std::back_inserter(out), "{}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
  });
}

// {"content": [{token, logprob, bytes, top_logprobs}, ...]}
void append_chat_logprobs(std::string& out, const ChoicePart& part) {
  out += "{\"content\":";
  append_array(out, part.logprobs, [&](const TokenLogprob& token) {
    out += '{';
    append_token(out, token);
    out += ",\"top_logprobs\":";
    append_array(out, token.top, [&](const TokenLogprob& other) {
      out += '{';
      append_token(out, other);
      out += '}';
    });
    out += '}';
  });
  out += ",\"refusal\":null}";
}

// The likeliest tokens by their texts, and the one that came. Of tokens with the same text the likeliest
// stands for all.
void append_by_text(std::string& out, const TokenLogprob& token) {
  std::vector<const TokenLogprob*> named;
  const auto name = [&](const TokenLogprob& one) {
    const auto same = [&](const TokenLogprob* other) { return other->text == one.text; };
    if (std::ranges::none_of(named, same)) named.push_back(&one);
  };
  for (const TokenLogprob& other : token.top) name(other);
  name(token);
  out += '{';
  for (const TokenLogprob* one : named) {
    if (one != named.front()) out += ',';
    append_json_string(out, one->text);
    out += ':';
    append_json_number(out, one->logprob);
  }
  out += '}';
}

// Four arrays, an entry a token. The offsets are those of the tokens' own texts, one behind the other.
void append_completion_logprobs(std::string& out, const ChoicePart& part) {
  out += "{\"tokens\":";
  append_array(out, part.logprobs, [&](const TokenLogprob& token) { append_json_string(out, token.text); });
  out += ",\"token_logprobs\":";
  append_array(out, part.logprobs, [&](const TokenLogprob& token) {
    token.scored ? append_json_number(out, token.logprob) : void(out += "null");
  });
  out += ",\"top_logprobs\":";
  append_array(out, part.logprobs, [&](const TokenLogprob& token) {
    token.scored ? append_by_text(out, token) : void(out += "null");
  });
  out += ",\"text_offset\":";
  uint64_t offset = part.text_offset;
  append_array(out, part.logprobs, [&](const TokenLogprob& token) {
    fmt::format_to(std::back_inserter(out), "{}", offset);
    offset += token.text.size();
  });
  out += '}';
}

// What follows the text in a choice.
void append_choice_end(std::string& out, const AnswerHead& head, const ChoicePart& part) {
  out += ",\"logprobs\":";
  if (!part.with_logprobs) {
    out += "null";
  } else if (head.chat) {
    append_chat_logprobs(out, part);
  } else {
    append_completion_logprobs(out, part);
  }
  if (part.with_token_ids) {
    out += ",\"token_ids\":";
    append_array(out, part.token_ids,
                 [&](uint32_t id) { fmt::format_to(std::back_inserter(out), "{}", id); });
  }
  out += ",\"finish_reason\":";
  if (part.finish_reason == nullptr) {
    out += "null}";
    return;
  }
  append_json_string(out, part.finish_reason);
  if (part.stop_string) {
    out += ",\"stop_reason\":";
    append_json_string(out, *part.stop_string);
  }
  out += '}';
}

void append_head(std::string& out, const AnswerHead& head, const char* object) {
  out += "{\"id\":";
  append_json_string(out, head.id);
  fmt::format_to(std::back_inserter(out), ",\"object\":\"{}\",\"created\":{},\"model\":", object,
                 head.created);
  append_json_string(out, head.model);
  out += ",\"system_fingerprint\":";
  append_json_string(out, head.fingerprint);
}

const char* frame_object(const AnswerHead& head) {
  return head.chat ? "chat.completion.chunk" : "text_completion";
}

std::string begun_frame(const AnswerHead& head, uint32_t index) {
  std::string out = "data: ";
  append_head(out, head, frame_object(head));
  fmt::format_to(std::back_inserter(out), ",\"choices\":[{{\"index\":{},", index);
  return out;
}

std::string ended_frame(const AnswerHead& head, std::string out) {
  return out + (head.stream_usage ? "],\"usage\":null}\n\n" : "]}\n\n");
}

constexpr std::string_view kDoneFrame = "data: [DONE]\n\n";

// A chat's first frame for each choice.
std::string role_frame(const AnswerHead& head, uint32_t index) {
  std::string out = begun_frame(head, index);
  out += "\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}";
  return ended_frame(head, std::move(out));
}

std::string part_frame(const AnswerHead& head, const ChoicePart& part) {
  std::string out = begun_frame(head, part.index);
  if (head.chat) {
    append_delta(out, part);
  } else {
    out += "\"text\":";
    append_json_string(out, part.text);
  }
  append_choice_end(out, head, part);
  return ended_frame(head, std::move(out));
}

std::string usage_frame(const AnswerHead& head, const Usage& usage) {
  std::string out = "data: ";
  append_head(out, head, frame_object(head));
  out += ",\"choices\":[],";
  append_usage(out, usage);
  return out + "}\n\n";
}

}  // namespace

std::string CompletionWriter::begin(const Usage&) { return {}; }

std::string CompletionWriter::part(const ChoicePart& part, bool first) {
  return (first && head_.chat ? role_frame(head_, part.index) : "") + part_frame(head_, part);
}

std::string CompletionWriter::end(const Usage& usage) {
  std::string out = head_.stream_usage ? usage_frame(head_, usage) : "";
  return out += kDoneFrame;
}

std::string CompletionWriter::failure(const ApiError& error) {
  std::string out = "data: " + error_json(error) + "\n\n";
  return out += kDoneFrame;
}

std::string CompletionWriter::whole(std::span<const ChoicePart> choices, const Usage& usage) {
  std::string out;
  append_head(out, head_, head_.chat ? "chat.completion" : "text_completion");
  out += ",\"choices\":";
  append_array(out, choices, [&](const ChoicePart& part) {
    fmt::format_to(std::back_inserter(out), "{{\"index\":{},", part.index);
    if (head_.chat) {
      append_message(out, part);
    } else {
      out += "\"text\":";
      append_json_string(out, part.text);
    }
    append_choice_end(out, head_, part);
  });
  out += ',';
  append_usage(out, usage);
  return out + "}";
}

}  // namespace plow
