// A model as the server knows it: what never changes, and where its answers come from.
#pragma once

#include "abi/step.h"
#include "runtime/model_pool.h"
#include "serve/tool_calls.h"
#include "text/chat_template/chat_template.h"
#include "text/tokenizer/tokenizer.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace plow {

// What takes memory, for people: "weights", 123456789.
struct MemoryPart {
  std::string name;
  uint64_t bytes = 0;
};

struct ServedModel {
  std::string name;         // as requests call it
  std::string fingerprint;  // of bundle and program: the same one gives the same answers
  std::string isa;          // the instructions that run
  int64_t created = 0;      // seconds since 1970
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat_template;
  std::vector<uint32_t> stop_ids;  // that end the model's answers
  SamplingParams sampling{};       // what the checkpoint recommends
  uint32_t context = 0;            // tokens of prompt and answer
  uint32_t vocab = 0;              // of the engine; may be more than the tokenizer has
  uint32_t slots = 0;              // answers at once
  std::vector<MemoryPart> memory;
  std::function<LocalTime()> clock;  // for templates that print the date
  ToolDialect tool_dialect = ToolDialect::kNone;
  bool thinks = false;  // its answers may begin with thoughts between <think> and </think>
};

// What templates may print as control tokens: bos_token, eos_token, ... with their spellings.
boost::json::object special_token_names(const Tokenizer& tokenizer);

// A conversation as the template shall show it.
struct ConversationInput {
  boost::json::array messages;
  boost::json::value tools;       // an array or null
  boost::json::object variables;  // of the request
  bool add_generation_prompt = true;
};
struct Conversation {
  std::vector<uint32_t> ids;
  bool in_thought = false;  // it ends with <think>: the answer begins with thoughts
};
// Text of a message never becomes a control token. Errors: what the template says.
Result<Conversation> encode_conversation(const ServedModel& model, ConversationInput input);

// Where a model's answers come from: a pool of models, or what a test puts in its place. The functions may be
// called from any thread; they mean what those of ModelPool mean.
class AnswerSource {
 public:
  virtual ~AnswerSource() = default;
  virtual std::variant<std::vector<uint64_t>, Refused> ask(std::vector<AnswerRequest> requests) = 0;
  virtual void cancel(uint64_t id) = 0;
  virtual DispatchStatus status() const = 0;
  virtual Residency residency() const { return {}; }
};

class PoolSource : public AnswerSource {
 public:
  // REQUIRES that `pool` outlives the source.
  PoolSource(ModelPool& pool, size_t model) : pool_(pool), model_(model) {}
  std::variant<std::vector<uint64_t>, Refused> ask(std::vector<AnswerRequest> requests) override {
    return pool_.ask(model_, std::move(requests));
  }
  void cancel(uint64_t id) override { pool_.cancel(model_, id); }
  DispatchStatus status() const override { return pool_.status(model_); }
  Residency residency() const override { return pool_.residency(model_); }

 private:
  ModelPool& pool_;
  const size_t model_;
};

}  // namespace plow
