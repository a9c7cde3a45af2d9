// A model for the tests of the server: every byte is a token, with three control tokens and a chat template
// in the style of ChatML. No engine; answers come from a script.
#pragma once

#include "base/check.h"
#include "runtime/engine.h"
#include "serve/http.h"
#include "serve/serve_log.h"
#include "serve/served_model.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/compile_tokenizer.h"

#include <boost/json.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plow {

constexpr uint32_t kByteModelStart = 256, kByteModelEnd = 257, kByteModelVocab = 260;

inline std::string byte_model_tokenizer_json() {
  namespace json = boost::json;
  json::object vocab;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    std::string spelling;
    append_byte_level(spelling, std::string(1, static_cast<char>(byte)));
    vocab[spelling] = byte;
  }
  json::array added;
  for (const auto& [id, text] :
       {std::pair(kByteModelStart, "<|im_start|>"), std::pair(kByteModelEnd, "<|im_end|>"),
        std::pair(uint32_t{258}, "<|endoftext|>")}) {
    added.push_back({{"id", id},
                     {"content", text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const json::object level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  return json::serialize(json::object{{"version", "1.0"},
                                      {"truncation", nullptr},
                                      {"padding", nullptr},
                                      {"added_tokens", added},
                                      {"normalizer", nullptr},
                                      {"pre_tokenizer", level},
                                      {"post_processor", nullptr},
                                      {"decoder", level},
                                      {"model",
                                       {{"type", "BPE"},
                                        {"dropout", nullptr},
                                        {"unk_token", nullptr},
                                        {"continuing_subword_prefix", nullptr},
                                        {"end_of_word_suffix", nullptr},
                                        {"fuse_unk", false},
                                        {"byte_fallback", false},
                                        {"ignore_merges", false},
                                        {"vocab", vocab},
                                        {"merges", json::array()}}}});
}

class ByteModel {
 public:
  explicit ByteModel(ToolDialect dialect = ToolDialect::kNone, bool thinks = false,
                     std::string name = "byte-model")
      : table_(compiled()), model_(make()) {
    model_.name = std::move(name);
    model_.tool_dialect = dialect;
    model_.thinks = thinks;
  }
  const ServedModel& operator*() const { return model_; }
  const ServedModel* operator->() const { return &model_; }

 private:
  static std::vector<std::byte> compiled() {
    auto table = compile_tokenizer(byte_model_tokenizer_json(),
                                   R"({"bos_token":"<|endoftext|>","eos_token":"<|im_end|>"})");
    PLOW_CHECK(table.ok(), "{}", table.error().message);
    return std::move(table).value();
  }
  ServedModel make() const {
    auto tokenizer = Tokenizer::open(table_);
    PLOW_CHECK(tokenizer.ok(), "{}", tokenizer.error().message);
    auto chat = ChatTemplate::compile(
        "{% for message in messages %}{% if message['role'] == 'tool' %}{{ raise_exception('no tools here') "
        "}}{% endif %}"
        "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
    PLOW_CHECK(chat.ok(), "{}", chat.error().message);
    return ServedModel{"byte-model",
                       "plow-test",
                       "none",
                       1'700'000'000,
                       std::move(tokenizer).value(),
                       std::move(chat).value(),
                       {kByteModelEnd},
                       greedy_sampling(),
                       200,
                       kByteModelVocab,
                       4,
                       {{"weights", 1000}},
                       [] { return LocalTime(); }};
  }

  std::vector<std::byte> table_;
  ServedModel model_;
};

// A source whose answers the test writes.
class ScriptedSource : public AnswerSource {
 public:
  std::variant<std::vector<uint64_t>, Refused> ask(std::vector<AnswerRequest> requests) override {
    if (refuse_with) return *refuse_with;
    std::vector<uint64_t> ids;
    for (AnswerRequest& request : requests) {
      ids.push_back(asked.size());
      asked.push_back(std::move(request));
    }
    return ids;
  }
  void cancel(uint64_t id) override { cancelled.push_back(id); }
  DispatchStatus status() const override { return now; }
  Residency residency() const override { return there; }

  // The i-th answer goes on with these bytes, one token each.
  void say(size_t i, std::string_view text) {
    for (const char c : text) asked[i].on_token({static_cast<unsigned char>(c), -0.5f});
  }
  void end(size_t i, EndReason reason, std::string message = {}) {
    asked[i].on_end({reason, std::move(message), 0});
  }

  std::deque<AnswerRequest> asked;
  std::vector<uint64_t> cancelled;
  std::optional<Refused> refuse_with;
  DispatchStatus now;
  Residency there;
};

// An exchange that writes into strings; what is posted runs when run() is called.
class RecordedExchange : public HttpExchange {
 public:
  void post(std::function<void()> work) override { posted.push_back(std::move(work)); }
  void listen(ExchangeEvents e) override { events = std::move(e); }
  void respond(HttpResponse r) override {
    PLOW_CHECK(!over, "a second response");
    response = std::move(r);
    over = true;
  }
  void begin_stream(HttpResponse r) override {
    response = std::move(r);
    streams = true;
  }
  void send(std::string_view bytes) override {
    PLOW_CHECK(streams && !over, "bytes outside of a stream");
    response.body += bytes;
  }
  void end() override { over = true; }
  size_t unsent() const override { return pretend_unsent; }

  void run() {
    while (!posted.empty()) {
      const auto work = std::move(posted.front());
      posted.pop_front();
      work();
    }
  }
  void leave() {
    const auto gone = events.on_gone;
    if (gone) gone();
  }

  std::deque<std::function<void()>> posted;
  ExchangeEvents events;
  HttpResponse response;
  bool over = false, streams = false;
  size_t pretend_unsent = 0;
};

class SilentLog : public ServeLog {
 public:
  void request(const RequestRecord& record) override { records.push_back(record); }
  void warn(std::string_view text) override { warnings.emplace_back(text); }
  std::vector<RequestRecord> records;
  std::vector<std::string> warnings;
};

}  // namespace plow
