#include "plowrt/bench_serve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace plow {
namespace {

std::vector<ServedRequest> good_run(uint32_t n) {
  std::vector<ServedRequest> requests(n);
  for (uint32_t i = 0; i < n; ++i)
    requests[i] = {0.1 * i, 0.1 * i, 0.1 * i + 1, 0.1 * i + 2, {}, 100, 10, 0, {}};
  return requests;
}

TEST(BenchServe, APercentileIsTheNearestRank) {
  // The example of the nearest-rank method: 15, 20, 35, 40, 50.
  const std::vector<double> values = {35, 20, 15, 50, 40};
  EXPECT_EQ(percentile(values, 0.05), 15);
  EXPECT_EQ(percentile(values, 0.3), 20);
  EXPECT_EQ(percentile(values, 0.4), 20);
  EXPECT_EQ(percentile(values, 0.5), 35);
  EXPECT_EQ(percentile(values, 1), 50);
}

TEST(BenchServe, NoTwoPromptsBeginAlike) {
  ServeLoad load;
  load.requests = 500;
  std::set<std::string> beginnings;
  for (const std::string& prompt : unique_prompts(load)) {
    EXPECT_TRUE(beginnings.insert(prompt.substr(0, prompt.find(' '))).second);
    EXPECT_EQ(std::ranges::count(prompt, ' '), load.prompt_words - 1);
  }
}

TEST(BenchServe, RunsThatAreNotValidAreToldApart) {
  ServeLoad open;
  open.rate = 10;
  open.requests = 20;
  const auto prompts = unique_prompts(open);
  EXPECT_EQ(invalid_because(open, good_run(20), prompts), "");
  const auto why = [&](const auto& change) {
    auto requests = good_run(20);
    auto asked = prompts;
    change(requests, asked);
    return invalid_because(open, requests, asked);
  };
  EXPECT_NE(why([](auto& r, auto&) { r[3].error = "503"; }).find("request 3 failed: 503"), std::string::npos);
  EXPECT_NE(why([](auto& r, auto&) { r[4].answer_tokens = 0; }).find("request 4"), std::string::npos);
  EXPECT_NE(why([](auto&, auto& p) { p[4] = p[9]; }).find("twice"), std::string::npos);
  EXPECT_NE(why([](auto& r, auto&) { r[5].cached_tokens = 101; }).find("101 of 2000 tokens"),
            std::string::npos);
  EXPECT_NE(why([](auto& r, auto&) { r[19].sent += 1; }).find("the last request was due"), std::string::npos);
  EXPECT_NE(why([](auto& r, auto&) { r[5].sent += 0.2; }).find("0.200 s after it was due"),
            std::string::npos);
  ServeLoad closed = open;
  closed.rate = 0;
  auto late = good_run(20);
  late[5].sent += 0.2;
  EXPECT_EQ(invalid_because(closed, late, prompts), "");
}

}  // namespace
}  // namespace plow
