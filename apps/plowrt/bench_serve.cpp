#include "plowrt/bench_serve.h"

#include "base/text_table.h"
#include "plowrt/connection.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>

namespace plow {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

constexpr int kPatience = 600;               // seconds for a piece of an answer
constexpr uint32_t kMostConnections = 1024;  // of the open loop: what a usual limit of descriptors allows
constexpr double kLatest = 0.05;      // of the run's length that a request may be sent after it was due
constexpr double kLeastRate = 0.95;   // of the rate that was asked for
constexpr double kMostCached = 0.05;  // of the prompts' tokens: what every prompt begins with may be shared
constexpr size_t kForMedian = 10, kForP99 = 100;  // values below which a percentile says nothing

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string request_text(const ServeLoad& load, const std::string& prompt) {
  json::object body{{"prompt", prompt}, {"max_tokens", load.max_tokens},
                    {"temperature", 0}, {"ignore_eos", true},
                    {"stream", true},   {"stream_options", {{"include_usage", true}}}};
  if (!load.model.empty()) body["model"] = load.model;
  const std::string text = json::serialize(body);
  const std::string key = load.api_key.empty() ? "" : "Authorization: Bearer " + load.api_key + "\r\n";
  return fmt::format("POST /v1/completions HTTP/1.0\r\nHost: {}\r\n{}Content-Length: {}\r\n\r\n{}", load.host,
                     key, text.size(), text);
}

// The stream of one answer, as it comes.
struct StreamReader {
  ServedRequest& request;
  Clock::time_point begin;
  double last = 0;
  bool done = false;

  void take(std::string_view data) {
    if (data == "[DONE]") {
      done = true;
      return;
    }
    const json::object frame = json::parse(data).as_object();
    if (const json::value* error = frame.if_contains("error")) {
      request.error = json::serialize(*error);
      return;
    }
    if (const json::value* usage = frame.if_contains("usage"); usage != nullptr && usage->is_object()) {
      const auto count = [](const json::value& value) { return value.to_number<uint64_t>(); };
      request.prompt_tokens = count(usage->at("prompt_tokens"));
      request.answer_tokens = count(usage->at("completion_tokens"));
      request.cached_tokens = count(usage->at("prompt_tokens_details").at("cached_tokens"));
      return;
    }
    if (frame.at("choices").at(0).at("text").as_string().empty()) return;  // only says that the answer ended
    const double now = seconds_since(begin);
    if (request.first_token == 0) {
      request.first_token = now;
    } else {
      request.gaps.push_back(now - last);
    }
    last = now;
  }

  Status run(Connection& connection, const std::string& text) {
    PLOW_TRY_STATUS(connection.send(text));
    std::string bytes;
    bool in_body = false;
    for (bool more = true; more;) {
      PLOW_TRY(more, connection.receive(bytes));
      if (!in_body) {
        const size_t head = bytes.find("\r\n\r\n");
        if (head == std::string::npos) continue;
        if (bytes.compare(9, 3, "200") != 0) return input_error(bytes.substr(0, bytes.find("\r\n")));
        bytes.erase(0, head + 4);
        in_body = true;
      }
      for (size_t end; (end = bytes.find("\n\n")) != std::string::npos; bytes.erase(0, end + 2)) {
        constexpr std::string_view kData = "data: ";
        const std::string_view frame = std::string_view(bytes).substr(0, end);
        if (frame.starts_with(kData)) take(frame.substr(kData.size()));
      }
    }
    if (!done && request.error.empty()) return input_error("the answer has no end");
    return {};
  }
};

void closed_loop(const ServeLoad& load, const std::vector<std::string>& prompts,
                 std::vector<ServedRequest>& requests) {
  std::atomic<size_t> next{0};
  const auto begin = Clock::now();
  std::vector<std::thread> clients;
  for (uint32_t i = 0; i < load.concurrency; ++i) {
    clients.emplace_back([&] {
      for (size_t at = next++; at < prompts.size(); at = next++) {
        requests[at].due = seconds_since(begin);
        ask_server(load, prompts[at], begin, requests[at]);
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

// Each request has a thread; those that ended are joined at the end, as there are no more than requests.
void open_loop(const ServeLoad& load, const std::vector<std::string>& prompts,
               std::vector<ServedRequest>& requests) {
  std::mt19937_64 random(load.seed);
  std::exponential_distribution<double> gap(load.rate);
  std::atomic<uint32_t> open{0};
  const auto begin = Clock::now();
  double due = 0;
  std::vector<std::thread> clients;
  for (size_t i = 0; i < prompts.size(); ++i, due += gap(random)) {
    std::this_thread::sleep_until(
        begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(due)));
    requests[i].due = due;
    if (open >= kMostConnections) {
      requests[i].error =
          fmt::format("{} requests were open, which is all that this client can have", kMostConnections);
      continue;
    }
    ++open;
    clients.emplace_back([&, i] {
      ask_server(load, prompts[i], begin, requests[i]);
      --open;
    });
  }
  for (std::thread& client : clients) client.join();
}

double span_of(const std::vector<ServedRequest>& requests) {
  double end = 0;
  for (const ServedRequest& request : requests) end = std::max(end, request.end);
  return end;
}

struct Figures {
  std::vector<double> first, gaps, whole;  // seconds
  uint64_t prompt_tokens = 0, answer_tokens = 0;
};

Figures figures_of(const std::vector<ServedRequest>& requests) {
  Figures f;
  for (const ServedRequest& request : requests) {
    // From when it was due: a client that is late must not make a slow server look fast.
    f.first.push_back(request.first_token - request.due);
    f.whole.push_back(request.end - request.due);
    f.gaps.insert(f.gaps.end(), request.gaps.begin(), request.gaps.end());
    f.prompt_tokens += request.prompt_tokens;
    f.answer_tokens += request.answer_tokens;
  }
  return f;
}

json::object percentiles(const std::vector<double>& values) {
  json::object out{{"n", values.size()}};
  if (values.size() >= kForMedian) {
    out["p50_ms"] = percentile(values, 0.5) * 1e3;
    out["p90_ms"] = percentile(values, 0.9) * 1e3;
  }
  if (values.size() >= kForP99) out["p99_ms"] = percentile(values, 0.99) * 1e3;
  if (!values.empty()) out["most_ms"] = percentile(values, 1) * 1e3;
  return out;
}

void print_figures(const ServeLoad& load, const std::vector<ServedRequest>& requests) {
  const Figures f = figures_of(requests);
  const double seconds = span_of(requests);
  const json::object out{{"bench", "serve"},
                         {"loop", load.rate > 0 ? "open" : "closed"},
                         {"rate", load.rate},
                         {"concurrency", load.concurrency},
                         {"requests", load.requests},
                         {"seconds", seconds},
                         {"requests_per_second", load.requests / seconds},
                         {"prompt_tokens", f.prompt_tokens},
                         {"answer_tokens", f.answer_tokens},
                         {"answer_tokens_per_second", static_cast<double>(f.answer_tokens) / seconds},
                         {"first_token", percentiles(f.first)},
                         {"token_gap", percentiles(f.gaps)},
                         {"request", percentiles(f.whole)}};
  if (load.json) {
    fmt::print("{}\n", json::serialize(out));
    return;
  }
  fmt::print("{} requests in {:.2f} s: {:.2f} a second, {:.1f} tokens of answers a second\n\n", load.requests,
             seconds, load.requests / seconds, static_cast<double>(f.answer_tokens) / seconds);
  TextTable table({"milliseconds", ">n", ">p50", ">p90", ">p99", ">most"});
  for (const auto& [title, key] : {std::pair("to the first token", "first_token"),
                                   {"between tokens", "token_gap"},
                                   {"whole request", "request"}}) {
    const json::object& row = out.at(key).as_object();
    std::vector<std::string> cells{title, std::to_string(row.at("n").to_number<uint64_t>())};
    for (const char* name : {"p50_ms", "p90_ms", "p99_ms", "most_ms"}) {
      const json::value* value = row.if_contains(name);
      cells.push_back(value == nullptr ? "-" : fmt::format("{:.1f}", value->as_double()));
    }
    table.add_row(cells);
  }
  fmt::print("{}", table.to_string());
}

}  // namespace

void ask_server(const ServeLoad& load, const std::string& prompt, Clock::time_point begin,
                ServedRequest& request) {
  request.sent = seconds_since(begin);
  auto connection = Connection::open(load.host, load.port, kPatience);
  Status status = connection.ok() ? Status() : Status(connection.error());
  try {
    if (status.ok()) status = StreamReader{request, begin}.run(*connection, request_text(load, prompt));
  } catch (const std::exception& error) {  // a frame that is no JSON, or lacks a field
    status = input_error(error.what());
  }
  if (!status.ok()) request.error = status.error().message;
  request.end = seconds_since(begin);
}

double percentile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::clamp<size_t>(rank, 1, values.size()) - 1];
}

std::vector<std::string> unique_prompts(const ServeLoad& load) {
  std::mt19937_64 random(load.seed);
  std::vector<std::string> prompts;
  for (uint32_t i = 0; i < load.requests; ++i) {
    std::string prompt = fmt::format("{:x}", i);  // in front: caches share beginnings
    for (uint32_t w = 1; w < load.prompt_words; ++w) prompt += fmt::format(" {:x}", random() % 0x10000);
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

std::string invalid_because(const ServeLoad& load, const std::vector<ServedRequest>& requests,
                            std::vector<std::string> prompts) {
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!requests[i].error.empty()) return fmt::format("request {} failed: {}", i, requests[i].error);
    if (requests[i].answer_tokens == 0) return fmt::format("request {} was answered with nothing", i);
  }
  std::ranges::sort(prompts);
  if (std::ranges::adjacent_find(prompts) != prompts.end()) return "a prompt was asked twice";
  uint64_t prompt_tokens = 0, cached = 0;
  double latest = 0, last_due = 0, last_sent = 0;
  for (const ServedRequest& request : requests) {
    prompt_tokens += request.prompt_tokens;
    cached += request.cached_tokens;
    latest = std::max(latest, request.sent - request.due);
    last_due = std::max(last_due, request.due);
    last_sent = std::max(last_sent, request.sent);
  }
  if (static_cast<double>(cached) > kMostCached * static_cast<double>(prompt_tokens)) {
    return fmt::format(
        "{} of {} tokens of prompts came from the server's cache: it has seen them before. Take "
        "another --seed, or start the server anew",
        cached, prompt_tokens);
  }
  if (load.rate <= 0) return {};
  if (last_due > 0 && last_sent * kLeastRate > last_due)
    return fmt::format("the rate was not kept: the last request was due at {:.2f} s and sent at {:.2f} s",
                       last_due, last_sent);
  if (latest > kLatest * last_due)
    return fmt::format("the rate was not kept: a request was sent {:.3f} s after it was due", latest);
  return {};
}

Status bench_serve(const ServeLoad& load) {
  const std::vector<std::string> prompts = unique_prompts(load);
  {  // a server that has never answered does things once; not counted, and of another prompt
    ServedRequest first;
    ask_server(load, "warm up", Clock::now(), first);
    if (!first.error.empty()) return input_error(first.error);
  }
  std::vector<ServedRequest> requests(prompts.size());
  if (load.rate > 0) {
    open_loop(load, prompts, requests);
  } else {
    closed_loop(load, prompts, requests);
  }
  if (const std::string why = invalid_because(load, requests, prompts); !why.empty())
    return device_error("the run is not valid: " + why + ".");
  print_figures(load, requests);
  return {};
}

}  // namespace plow
