#include "serve/answer.h"

#include "serve/messages_api.h"
#include "serve/structure.h"
#include "text/tokenizer/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace plow {
namespace {

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

HttpResponse error_response(const ApiError& error, const std::string& request_id, RouteId route) {
  HttpResponse response;
  response.status = error.status;
  response.fields.push_back({"X-Request-Id", request_id});
  if (error.retry_after > 0) response.fields.push_back({"Retry-After", std::to_string(error.retry_after)});
  const bool message = route == RouteId::kMessages || route == RouteId::kCountTokens;
  response.body = message ? message_error_json(error) : error_json(error);
  return response;
}

Answer::Answer(const AnswerSurroundings& surroundings, AnswerSpec spec, std::unique_ptr<AnswerWriter> writer,
               RequestOrigin origin, std::shared_ptr<HttpExchange> exchange)
    : env_(surroundings),
      spec_(std::move(spec)),
      writer_(std::move(writer)),
      origin_(std::move(origin)),
      exchange_(std::move(exchange)) {
  const size_t n = spec_.prompts.size() * spec_.n;
  for (size_t i = 0; i < n; ++i) {
    choices_.emplace_back(env_.model.tokenizer, spec_);
    ChoicePart& part = choices_.back().part;
    part.index = static_cast<uint32_t>(i);
    part.with_logprobs = spec_.logprobs;
    part.with_token_ids = spec_.return_token_ids;
    if (!spec_.echoes.empty()) part.text = spec_.echoes[i / spec_.n];
    if (spec_.score_prompt && spec_.logprobs) {
      part.logprobs.push_back(describe({spec_.prompts[i / spec_.n][0], 0}, {}));
      part.logprobs.back().scored = false;
    }
  }
  for (Choice& choice : choices_) {
    if (spec_.channels == ToolDialect::kNone) continue;
    choice.channels.emplace(spec_.channels);
    add_events(choice, choice.channels->push(spec_.begun));
  }
  open_choices_ = n;
  for (const auto& prompt : spec_.prompts) origin_.record.prompt_tokens += prompt.size();
}

std::vector<AnswerRequest> Answer::requests(uint64_t seed) {
  std::vector<AnswerRequest> requests;
  for (size_t i = 0; i < choices_.size(); ++i) {
    AnswerRequest request;
    request.prompt = spec_.prompts[i / spec_.n];
    request.max_tokens = spec_.max_tokens[i / spec_.n];
    request.sampling = spec_.sampling;
    request.sampling.seed = seed_of(seed, i % spec_.n);
    request.biases = spec_.biases;
    request.score_prompt = spec_.score_prompt;
    request.stop_ids = spec_.stop_ids;
    request.priority = spec_.priority;
    request.cache_salt = spec_.cache_salt;
    if (spec_.structure)
      request.rule =
          std::make_shared<StructureRule>(spec_.structure, *env_.trie, env_.model.vocab, spec_.stop_ids);
    if (i % spec_.n == 0)  // a prompt counts once, as in prompt_tokens
      request.on_begin = [self = shared_from_this()](uint32_t cached) { self->cached_tokens_ += cached; };
    const auto deliver = [self = shared_from_this(), i](Event::Kind kind, const AnswerToken& token,
                                                        const AnswerEnd& end) {
      self->deliver({i,
                     kind,
                     {token.token, token.logprob},
                     {token.top.begin(), token.top.end()},
                     std::chrono::steady_clock::now(),
                     end});
    };
    request.on_token = [deliver](const AnswerToken& token) { deliver(Event::Kind::kToken, token, {}); };
    if (spec_.logprobs && spec_.score_prompt) {
      request.on_prompt_token = [deliver](const AnswerToken& token) {
        deliver(Event::Kind::kPromptToken, token, {});
      };
    }
    request.on_end = [deliver](const AnswerEnd& end) { deliver(Event::Kind::kEnd, {}, end); };
    requests.push_back(std::move(request));
  }
  return requests;
}

void Answer::start(uint64_t fallback_seed) {
  ++env_.metrics.open_requests;
  // The exchange keeps the answer while it is under way; done() takes this back.
  exchange_->listen({[self = shared_from_this()] { self->pump(); },
                     [self = shared_from_this()] {
                       self->fail({.status = 408,
                                   .message = "The client reads too slowly; the answer was ended.",
                                   .type = "timeout_error",
                                   .code = "slow_client"},
                                  AnswerOutcome::kCancelled);
                     },
                     [self = shared_from_this()] { self->client_left(); }});
  if (over_) return;
  read_seconds_ = seconds_between(origin_.arrival, std::chrono::steady_clock::now());
  auto asked = env_.source.ask(requests(spec_.seed.value_or(fallback_seed)));
  if (const Refused* refused = std::get_if<Refused>(&asked)) return refuse(*refused);
  const auto& ids = std::get<std::vector<uint64_t>>(asked);
  const Time now = std::chrono::steady_clock::now();
  for (size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].id = ids[i];
    env_.queue.began(now);
  }
  if (!spec_.stream) return;
  HttpResponse response;
  response.content_type = "text/event-stream; charset=utf-8";
  // The second is for nginx, which would hold the events back.
  response.fields = {{"Cache-Control", "no-cache"},
                     {"X-Accel-Buffering", "no"},
                     {"X-Request-Id", origin_.record.id},
                     timing()};
  exchange_->begin_stream(std::move(response));
  exchange_->send(writer_->begin(usage()));
}

void Answer::refuse(const Refused& refused) {
  ApiError error{.message = refused.message};
  if (refused.why != Refusal::kInvalid) {
    error.status = 503;
    error.type = "unavailable_error";
    error.code = refused.why == Refusal::kQueueFull ? "queue_full" : "shutting_down";
    error.retry_after =
        std::max(refused.wait_seconds, env_.queue.seconds(env_.source.status().counts.waiting));
  }
  env_.metrics.count_refusal(refused.why);
  exchange_->respond(error_response(error, origin_.record.id, origin_.route));
  origin_.record.note = refused.message;
  done(error.status);
}

void Answer::deliver(Event event) {
  {
    const std::lock_guard lock(mutex_);
    mail_.push_back(std::move(event));
    if (std::exchange(pump_posted_, true)) return;
  }
  exchange_->post([self = shared_from_this()] { self->pump(); });
}

void Answer::pump() {
  {
    const std::lock_guard lock(mutex_);
    std::ranges::move(mail_, std::back_inserter(backlog_));
    mail_.clear();
    pump_posted_ = false;
  }
  while (!backlog_.empty() && !over_ && !(spec_.stream && exchange_->unsent() >= kStreamRoom)) {
    const Event event = std::move(backlog_.front());
    backlog_.pop_front();
    take(event);
    if (held_ > 0) {
      --held_;
    } else if (spec_.stream && event.kind == Event::Kind::kToken) {
      env_.metrics.token_overhead.observe(seconds_between(event.at, std::chrono::steady_clock::now()));
    }
  }
  if (over_) backlog_.clear();
  held_ = backlog_.size();
}

void Answer::take(const Event& event) {
  Choice& choice = choices_[event.choice];
  if (choice.over) return;  // tokens behind a stop string
  switch (event.kind) {
    case Event::Kind::kToken:
      return take_token(event, choice);
    case Event::Kind::kPromptToken:
      return choice.part.logprobs.push_back(describe(event.token, event.top));
    case Event::Kind::kEnd:
      return take_end(event.end, choice);
  }
}

void Answer::take_token(const Event& event, Choice& choice) {
  RequestRecord& record = origin_.record;
  if (choice.n_tokens++ > 0) {
    env_.metrics.token_gap.observe(seconds_between(choice.last_token, event.at));
  } else {
    const double seconds = seconds_between(origin_.arrival, event.at);
    env_.metrics.first_token.observe(seconds);
    if (record.first_token_seconds == 0) record.first_token_seconds = seconds;
  }
  choice.last_token = event.at;
  ++record.answer_tokens;
  if (spec_.logprobs) choice.part.logprobs.push_back(describe(event.token, event.top));
  if (spec_.return_token_ids) choice.part.token_ids.push_back(event.token.token);
  if ((choice.thoughts && choice.thoughts->inside()) || (choice.channels && choice.channels->in_thought()))
    ++reasoning_tokens_;
  add_text(choice, choice.stops.push(choice.text.push(event.token.token)));
  if (choice.stops.stopped()) {
    env_.source.cancel(choice.id);
    flush_text(choice);
    close(choice, "stop");
  } else if (spec_.stream) {
    send_part(choice);
  }
}

void Answer::take_end(const AnswerEnd& end, Choice& choice) {
  if (end.reason == EndReason::kFailed) {
    return fail({.status = 500, .message = end.message, .type = "server_error", .code = "engine_failed"},
                AnswerOutcome::kFailed);
  }
  if (end.reason == EndReason::kCancelled) {  // not by us: then the choice would be over
    return fail({.status = 503,
                 .message = "The server is shutting down; the answer was ended.",
                 .type = "unavailable_error",
                 .code = "shutting_down"},
                AnswerOutcome::kCancelled);
  }
  add_text(choice, choice.stops.push(choice.text.finish()));
  if (!choice.stops.stopped()) add_text(choice, choice.stops.finish());
  flush_text(choice);
  close(choice, end.reason == EndReason::kStopToken || choice.stops.stopped() ? "stop" : "length");
}

// Text that is certain goes to where it belongs: thoughts, calls, content.
void Answer::add_text(Choice& choice, const std::string& text) {
  if (choice.channels) return add_events(choice, choice.channels->push(text));
  ThoughtSplitter::Piece piece{{}, text};
  if (choice.thoughts) piece = choice.thoughts->push(text);
  choice.part.reasoning += piece.thought;
  if (choice.calls) {
    add_events(choice, choice.calls->push(piece.text));
  } else {
    choice.part.text += piece.text;
  }
}

void Answer::add_events(Choice& choice, std::vector<ToolEvent> events) {
  auto& calls = choice.part.calls;
  for (ToolEvent& event : events) {
    switch (event.kind) {
      case ToolEvent::Kind::kText:
        choice.part.text += event.text;
        break;
      case ToolEvent::Kind::kThought:
        choice.part.reasoning += event.text;
        break;
      case ToolEvent::Kind::kCall:
        calls.push_back({choice.n_calls,
                         true,
                         fmt::format("call_{}_{}_{}", origin_.record.id, choice.part.index, choice.n_calls),
                         std::move(event.text),
                         {}});
        ++choice.n_calls;
        break;
      case ToolEvent::Kind::kArguments:
        if (choice.n_calls == 0) break;
        if (calls.empty() || calls.back().index != choice.n_calls - 1)
          calls.push_back({choice.n_calls - 1, false, {}, {}, {}});
        calls.back().arguments += event.text;
        break;
    }
  }
}

// What was held back when no more text comes.
void Answer::flush_text(Choice& choice) {
  if (choice.channels) return add_events(choice, choice.channels->finish());
  if (choice.thoughts) {
    const ThoughtSplitter::Piece rest = choice.thoughts->finish();
    choice.part.reasoning += rest.thought;
    if (choice.calls) {
      add_events(choice, choice.calls->push(rest.text));
    } else {
      choice.part.text += rest.text;
    }
  }
  if (choice.calls) add_events(choice, choice.calls->finish());
}

void Answer::close(Choice& choice, const char* finish_reason) {
  choice.over = true;
  const bool called = choice.n_calls > 0 && !spec_.named_tool && std::string_view(finish_reason) == "stop";
  choice.part.finish_reason = called ? "tool_calls" : finish_reason;
  if (choice.stops.stopped()) choice.part.stop_string = choice.stops.stopped_by();
  env_.queue.ended(std::chrono::steady_clock::now());
  env_.metrics.count_answer(std::string_view(finish_reason) == "stop" ? AnswerOutcome::kStop
                                                                      : AnswerOutcome::kLength);
  if (spec_.stream) send_part(choice);
  if (--open_choices_ == 0) finish();
}

void Answer::send_part(Choice& choice) {
  ChoicePart& part = choice.part;
  const bool silent = part.text.empty() && part.reasoning.empty() && part.calls.empty();
  if (silent && part.logprobs.empty() && part.token_ids.empty() && part.finish_reason == nullptr) return;
  const bool first = !std::exchange(choice.begun, true);
  exchange_->send(writer_->part(part, first));
  for (const TokenLogprob& token : part.logprobs) part.text_offset += token.text.size();
  part.text.clear();
  part.reasoning.clear();
  part.calls.clear();
  part.logprobs.clear();
  part.token_ids.clear();
}

Usage Answer::usage() const {
  return {
      origin_.record.prompt_tokens, origin_.record.answer_tokens,
      spec_.thinks || spec_.channels != ToolDialect::kNone ? std::optional(reasoning_tokens_) : std::nullopt,
      cached_tokens_};
}

// Milliseconds, as W3C's Server Timing wants them. A stream's header goes out before there is a token.
HttpField Answer::timing() const {
  std::string text = fmt::format("read;dur={:.3f}", read_seconds_ * 1e3);
  if (!spec_.stream) {
    fmt::format_to(std::back_inserter(text), ", first-token;dur={:.3f}, answer;dur={:.3f}",
                   origin_.record.first_token_seconds * 1e3,
                   seconds_between(origin_.arrival, std::chrono::steady_clock::now()) * 1e3);
  }
  return {"Server-Timing", std::move(text)};
}

void Answer::finish() {
  if (spec_.stream) {
    exchange_->send(writer_->end(usage()));
    exchange_->end();
    return done(200);
  }
  std::vector<ChoicePart> parts;
  for (Choice& choice : choices_) parts.push_back(std::move(choice.part));
  HttpResponse response;
  response.body = writer_->whole(parts, usage());
  response.fields = {{"X-Request-Id", origin_.record.id}, timing()};
  exchange_->respond(std::move(response));
  done(200);
}

// Ends all choices that are still going on, and with them the answer.
void Answer::give_up(AnswerOutcome outcome, int status, const std::string& why) {
  for (Choice& choice : choices_) {
    if (choice.over) continue;
    choice.over = true;
    env_.source.cancel(choice.id);
    env_.queue.left();
    env_.metrics.count_answer(outcome);
  }
  origin_.record.note = why;
  done(status);
}

void Answer::client_left() {
  constexpr int kClientLeft = 499;  // nginx's number for it
  if (!over_) give_up(AnswerOutcome::kCancelled, spec_.stream ? 200 : kClientLeft, "the client left");
}

void Answer::fail(const ApiError& error, AnswerOutcome outcome) {
  if (over_) return;
  if (spec_.stream) {
    exchange_->send(writer_->failure(error));
    exchange_->end();
  } else {
    exchange_->respond(error_response(error, origin_.record.id, origin_.route));
  }
  give_up(outcome, spec_.stream ? 200 : error.status, error.message);
}

void Answer::done(int status) {
  over_ = true;
  exchange_->listen({});
  --env_.metrics.open_requests;
  env_.metrics.count_response(origin_.route, status);
  const double seconds = seconds_between(origin_.arrival, std::chrono::steady_clock::now());
  env_.metrics.request.observe(seconds);
  origin_.record.status = status;
  origin_.record.seconds = seconds;
  env_.log.request(origin_.record);
}

TokenLogprob Answer::describe(const Sampled& token, const std::vector<Sampled>& top) const {
  TokenLogprob out;
  out.logprob = token.logprob;
  out.bytes = env_.model.tokenizer.token_bytes(token.token);
  for (const Sampled& other : top) out.top.push_back(describe(other, {}));
  if (!first_invalid_utf8(out.bytes)) {
    out.text = out.bytes;
    return out;
  }
  // OpenAI's form for a token that is no whole character.
  out.text = "bytes:";
  for (const char byte : out.bytes)
    fmt::format_to(std::back_inserter(out.text), "\\x{:02x}",
                   static_cast<unsigned>(static_cast<unsigned char>(byte)));
  return out;
}

}  // namespace plow
