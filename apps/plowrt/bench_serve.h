// plowrt bench serve: how a server answers many clients. Closed loop: so many clients, each asking again when
// it was answered. Open loop: requests come at a rate, whatever the server does, with exponential gaps.
#pragma once

#include "base/error.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace plow {

struct ServeLoad {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;
  std::string api_key, model;  // model: empty for the server's first
  uint32_t requests = 100;
  uint32_t concurrency = 4;  // closed loop
  double rate = 0;           // requests a second; above 0: open loop
  uint32_t prompt_words = 100;
  uint32_t max_tokens = 64;
  uint64_t seed = 1;
  bool json = false;
};

// One request as it went; times in seconds since the load began.
struct ServedRequest {
  double due = 0, sent = 0, first_token = 0, end = 0;
  std::vector<double> gaps;  // between pieces
  uint64_t prompt_tokens = 0, answer_tokens = 0, cached_tokens = 0;
  std::string error;  // empty: answered to the end
};

// Why no figure may be made of a run; empty when one may. `prompts` are what was asked.
std::string invalid_because(const ServeLoad& load, const std::vector<ServedRequest>& requests,
                            std::vector<std::string> prompts);

// The smallest value that is not below `share` of the values (nearest rank). REQUIRES values, 0 < share <= 1.
double percentile(std::vector<double> values, double share);

// The prompts of a load: no two alike, also not in their beginnings.
std::vector<std::string> unique_prompts(const ServeLoad& load);

// Asks one prompt and waits for the end of its answer. Times in `request` are since `begin`.
void ask_server(const ServeLoad& load, const std::string& prompt, std::chrono::steady_clock::time_point begin,
                ServedRequest& request);

// Errors: no server; (kDevice) the run is not valid, and why. No figure is printed then.
Status bench_serve(const ServeLoad& load);

}  // namespace plow
