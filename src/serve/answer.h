// One request for answers under way: from what was asked to the last byte of the response.
//
// The engine's thread only puts tokens into a box; text, stop strings and JSON are made in the exchange's own
// order, and only as fast as the client reads. Tokens that wait for a slow client are a few bytes each, and
// no more than the context can hold.
#pragma once

#include "grammar/token_trie.h"
#include "serve/answer_spec.h"
#include "serve/answer_writer.h"
#include "serve/channel_parser.h"
#include "serve/http.h"
#include "serve/metrics.h"
#include "serve/queue_estimate.h"
#include "serve/serve_log.h"
#include "serve/served_model.h"
#include "serve/stop_matcher.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace plow {

// What the requests of a server share. REQUIRES to outlive every answer.
struct AnswerSurroundings {
  const ServedModel& model;
  AnswerSource& source;
  ServeLog& log;
  Metrics& metrics;
  QueueEstimate& queue;
  const TokenTrie* trie = nullptr;  // of the model; there when the answer has a structure
};

// What is known of a request before it is read.
struct RequestOrigin {
  RouteId route = RouteId::kNone;
  RequestRecord record;
  std::chrono::steady_clock::time_point arrival;
};

// The response for an error in the shape of the route's API, with the request's id and Retry-After.
HttpResponse error_response(const ApiError& error, const std::string& request_id, RouteId route);

class Answer : public std::enable_shared_from_this<Answer> {
 public:
  Answer(const AnswerSurroundings& surroundings, AnswerSpec spec, std::unique_ptr<AnswerWriter> writer,
         RequestOrigin origin, std::shared_ptr<HttpExchange> exchange);
  // REQUIRES to be called in the exchange's order, once, with a seed for what names none.
  void start(uint64_t fallback_seed);

 private:
  using Time = std::chrono::steady_clock::time_point;

  struct Event {  // of the engine's thread
    size_t choice = 0;
    enum class Kind : uint8_t { kToken, kPromptToken, kEnd } kind = Kind::kToken;
    Sampled token{};
    std::vector<Sampled> top;
    Time at;
    AnswerEnd end;
  };
  struct Choice {
    Choice(const Tokenizer& tokenizer, const AnswerSpec& spec)
        // Marks of parts are control tokens.
        : text(tokenizer, spec.skip_special && spec.channels == ToolDialect::kNone), stops(spec.stops) {
      if (spec.thinks) thoughts.emplace(spec.in_thought);
      if (spec.tools != ToolDialect::kNone) calls.emplace(spec.tools);
    }
    TokenStream text;
    StopMatcher stops;
    std::optional<ThoughtSplitter> thoughts;
    std::optional<ToolCallParser> calls;
    std::optional<ChannelParser> channels;  // instead of both
    uint32_t n_calls = 0;
    uint64_t id = 0;     // the source's
    bool begun = false;  // something of it was sent
    bool over = false;
    uint32_t n_tokens = 0;
    Time last_token;
    ChoicePart part;  // what is not yet sent; all of it when the answer is not streamed
  };

  std::vector<AnswerRequest> requests(uint64_t seed);
  void refuse(const Refused& refused);
  void deliver(Event event);  // from the engine's thread
  void pump();
  void take(const Event& event);
  void take_token(const Event& event, Choice& choice);
  void take_end(const AnswerEnd& end, Choice& choice);
  void add_text(Choice& choice, const std::string& text);
  void add_events(Choice& choice, std::vector<ToolEvent> events);
  void flush_text(Choice& choice);
  void close(Choice& choice, const char* finish_reason);
  void send_part(Choice& choice);
  void finish();
  void fail(const ApiError& error, AnswerOutcome outcome);
  void client_left();
  void give_up(AnswerOutcome outcome, int status, const std::string& why);
  void done(int status);
  TokenLogprob describe(const Sampled& token, const std::vector<Sampled>& top) const;
  Usage usage() const;
  HttpField timing() const;

  AnswerSurroundings env_;
  AnswerSpec spec_;
  std::unique_ptr<AnswerWriter> writer_;
  RequestOrigin origin_;
  std::shared_ptr<HttpExchange> exchange_;
  std::vector<Choice> choices_;
  size_t open_choices_ = 0;
  uint64_t reasoning_tokens_ = 0;
  std::atomic<uint64_t> cached_tokens_{0};  // of the prompts'
  double read_seconds_ = 0;                 // until the request was read, checked and its turn
  std::deque<Event> backlog_;               // taken from the mail, not yet worked on
  size_t held_ = 0;                         // of the backlog's first: they waited for the client to read
  bool over_ = false;

  std::mutex mutex_;
  std::vector<Event> mail_;
  bool pump_posted_ = false;
};

}  // namespace plow
