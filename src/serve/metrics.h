// The server's figures in Prometheus' text format (prometheus.io/docs/instrumenting/exposition_formats). All
// series are there from the start, so that a dashboard never sees one appear.
#pragma once

#include "runtime/model_pool.h"
#include "serve/routes.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace plow {

// Durations by upper bound. Threads may observe while another reads; what is read then may lack the newest.
class Histogram {
 public:
  using Bounds = std::array<double, 16>;  // upper ones, in seconds
  explicit Histogram(const Bounds& bounds) : bounds_(bounds) {}
  void observe(double seconds);
  // Appends the lines of the histogram `name`.
  void append(std::string& out, std::string_view name, std::string_view help) const;

 private:
  const Bounds bounds_;
  std::array<std::atomic<uint64_t>, std::tuple_size_v<Bounds> + 1> counts_{};
  std::atomic<uint64_t> nanoseconds_{0};
};

// From the gap between two tokens of a small model on a GPU to a long answer on a CPU; the stretch is about
// two and a half from one to the next.
constexpr Histogram::Bounds kAnswerBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                             0.5,   1,      2.5,   5,    10,    25,   60,  300};
// From the making of one frame to a server whose processors do other things.
constexpr Histogram::Bounds kOverheadBounds = {1e-5,  2.5e-5, 5e-5,  1e-4, 2.5e-4, 5e-4, 0.001, 0.0025,
                                               0.005, 0.01,   0.025, 0.05, 0.1,    0.25, 0.5,   1};

// How an answer ended.
enum class AnswerOutcome : uint8_t { kStop, kLength, kCancelled, kFailed };
constexpr size_t kAnswerOutcomes = 4;

struct ModelFacts {
  std::string name, fingerprint;
  uint32_t context = 0, slots = 0;
  DispatchStatus status;
  Residency residency;
};

struct MetricsFacts {  // what metrics need and do not count
  std::string version;
  std::vector<ModelFacts> models;
  bool ready = false;
  int64_t started = 0;  // seconds since 1970
};

class Metrics {
 public:
  void count_response(RouteId route, int status);
  void count_answer(AnswerOutcome outcome) { ++answers_[static_cast<size_t>(outcome)]; }
  void count_refusal(Refusal why) { ++refusals_[static_cast<size_t>(why)]; }

  Histogram first_token{kAnswerBounds}, token_gap{kAnswerBounds}, request{kAnswerBounds};
  // Of a token of a stream: from when the engine gave it to when its frame is with the socket. Tokens that
  // waited for a client to read are left out.
  Histogram token_overhead{kOverheadBounds};
  std::atomic<uint64_t> open_requests{0};  // answers under way, those that wait for a slow client included

  // Figures of the engines are sums over the models; those that differ by model have its name as a label.
  std::string text(const MetricsFacts& facts) const;

 private:
  // Statuses that are counted apart; others are counted with the first one of their hundred.
  static constexpr std::array<int, 12> kStatuses = {200, 400, 401, 403, 404, 405,
                                                    408, 413, 431, 499, 500, 503};  // 499: the client left

  std::array<std::array<std::atomic<uint64_t>, kStatuses.size()>, kRouteIds> responses_{};
  std::array<std::atomic<uint64_t>, kAnswerOutcomes> answers_{};
  std::array<std::atomic<uint64_t>, 3> refusals_{};  // by Refusal
};

}  // namespace plow
