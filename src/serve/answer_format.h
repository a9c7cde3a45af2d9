// Answers of /v1/chat/completions and /v1/completions, in OpenAI's shapes.
#pragma once

#include "serve/answer_writer.h"

#include <cstdint>
#include <string>
#include <utility>

namespace plow {

// What is the same in all of an answer's JSON.
struct AnswerHead {
  bool chat = false;
  std::string id, model, fingerprint;
  int64_t created = 0;
  bool stream_usage = false;  // frames have "usage": null, and the last one has it
};

class CompletionWriter : public AnswerWriter {
 public:
  explicit CompletionWriter(AnswerHead head) : head_(std::move(head)) {}
  std::string begin(const Usage& usage) override;
  std::string part(const ChoicePart& part, bool first) override;
  std::string end(const Usage& usage) override;
  std::string failure(const ApiError& error) override;
  std::string whole(std::span<const ChoicePart> choices, const Usage& usage) override;

 private:
  AnswerHead head_;
};

}  // namespace plow
