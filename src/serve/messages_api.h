// Anthropic's Messages API (docs.anthropic.com, API reference "Messages", "Streaming Messages", "Count
// Message tokens"): a request becomes that of a chat, the answer a message of content blocks.
#pragma once

#include "serve/answer_writer.h"
#include "serve/api_error.h"

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

// The body of /v1/chat/completions that asks for the same. Errors: what messages_fields() refuses; content
// that is not text, calls or results of calls; a last message of the assistant's, which nothing goes on from.
// REQUIRES a `counts` of whether only tokens are counted.
std::optional<ApiError> chat_of_messages(const boost::json::object& body, bool counts,
                                         boost::json::object& chat, std::vector<std::string>& unknown);

// Writes one answer: blocks of thoughts, text and calls, each begun when the one before has ended.
class MessageWriter : public AnswerWriter {
 public:
  MessageWriter(std::string id, std::string model) : id_(std::move(id)), model_(std::move(model)) {}
  std::string begin(const Usage& usage) override;
  std::string part(const ChoicePart& part, bool first) override;
  std::string end(const Usage& usage) override;
  std::string failure(const ApiError& error) override;
  std::string whole(std::span<const ChoicePart> choices, const Usage& usage) override;

 private:
  enum class Block : uint8_t { kNone, kThinking, kText, kCall };
  void open(std::string& out, Block kind, boost::json::object block);
  void close(std::string& out);
  void add(std::string& out, boost::json::object delta);

  std::string id_, model_;
  Block block_ = Block::kNone;
  uint32_t index_ = 0;  // of the block
  bool called_ = false;
  std::string finish_reason_ = "stop";
  std::optional<std::string> stop_string_;
};

// The body of an error.
std::string message_error_json(const ApiError& error);

}  // namespace plow
