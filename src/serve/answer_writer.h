// Answers as bytes, in the shape of one API: whole, or in frames of server-sent events.
#pragma once

#include "serve/answer_parts.h"
#include "serve/api_error.h"

#include <span>
#include <string>

namespace plow {

// Of one answer; its functions are called in the exchange's order. A stream is begin(), part()s, and end() or
// failure(); what is not streamed is whole().
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  virtual std::string begin(const Usage& usage) = 0;
  // `first`: of its choice.
  virtual std::string part(const ChoicePart& part, bool first) = 0;
  virtual std::string end(const Usage& usage) = 0;
  virtual std::string failure(const ApiError& error) = 0;
  virtual std::string whole(std::span<const ChoicePart> choices, const Usage& usage) = 0;
};

}  // namespace plow
