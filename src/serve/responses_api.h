// OpenAI's Responses API (platform.openai.com, API reference "Responses" and "Streaming events"): a request
// becomes that of a chat, the answer a list of items.
#pragma once

#include "serve/answer_writer.h"
#include "serve/api_error.h"
#include "serve/response_store.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

// What a request says beside what a chat would.
struct ResponsesRequest {
  boost::json::object chat;       // the body of /v1/chat/completions that asks for the same
  boost::json::object echo;       // what a response repeats of its request
  boost::json::array remembered;  // the conversation without instructions
  bool store = true;
};

// Errors: what responses_fields() refuses; items that are not text, calls or outputs of calls; a previous
// response that the store does not have.
std::optional<ApiError> read_responses(const boost::json::object& body, const ResponseStore& store,
                                       ResponsesRequest& out, std::vector<std::string>& unknown);

// Writes one answer, and remembers it when it is whole and the request did not forbid that.
class ResponseWriter : public AnswerWriter {
 public:
  // REQUIRES that `store` outlives the writer.
  ResponseWriter(std::string id, std::string model, int64_t created, ResponsesRequest request,
                 ResponseStore& store)
      : id_(std::move(id)),
        model_(std::move(model)),
        created_(created),
        request_(std::move(request)),
        store_(store) {}
  std::string begin(const Usage& usage) override;
  std::string part(const ChoicePart& part, bool first) override;
  std::string end(const Usage& usage) override;
  std::string failure(const ApiError& error) override;
  std::string whole(std::span<const ChoicePart> choices, const Usage& usage) override;

 private:
  enum class Kind : uint8_t { kReasoning, kMessage, kCall };
  struct Item {
    Kind kind = Kind::kMessage;
    std::string id;
    std::string text;             // or arguments
    std::string call_id, name;    // of a call
    boost::json::array logprobs;  // of a message
  };
  boost::json::object item_object(const Item& item, const char* status) const;
  boost::json::object text_part(const Item& item) const;
  Item& add_item(Kind kind);
  std::string event(const char* type, boost::json::object data);
  std::string item_event(const char* type, const Item& item, boost::json::object data);
  std::string begin_item(const Item& item);
  std::string end_item(const Item& item);
  std::string move_to(Kind kind);
  boost::json::object response(const char* status, const Usage* usage) const;
  boost::json::object final_response(const Usage& usage) const;
  void remember(const boost::json::object& response);

  const std::string id_, model_;
  const int64_t created_;
  ResponsesRequest request_;
  ResponseStore& store_;
  std::vector<Item> items_;
  boost::json::array pending_;  // logprobs of tokens whose text is held back
  bool item_open_ = false;      // the last of them, in a stream
  uint64_t sequence_ = 0;       // of events
  std::string finish_reason_ = "stop";
};

}  // namespace plow
