#include "harness.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <string_view>

namespace plow {

namespace {

class Silent final : public ProgressSink {
 public:
  void summary(const CompileSummary&) override {}
  void stage(std::string_view, uint64_t, uint64_t) override {}
  bool cancelled() const override { return false; }
};

template <class T>
T must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

// One sequence on its way through the engine.
struct Feed {
  uint32_t slot = 0;
  std::vector<uint32_t> tokens;
  std::set<uint32_t> wanted;  // positions whose logits are asked for
  uint32_t next = 0;
};

struct Batch {
  std::vector<StepRequest> requests;
  std::vector<std::vector<uint32_t>> sample_at;
  std::vector<size_t> feed;  // by request
};

// As many tokens of each feed as the step takes: `chunk` a feed, and no more rows and samples than the engine allows.
Batch next_batch(const Engine& engine, std::vector<Feed>& feeds, uint32_t chunk) {
  Batch batch;
  uint32_t rows = 0, samples = 0;
  batch.sample_at.reserve(feeds.size());
  for (size_t f = 0; f < feeds.size(); ++f) {
    Feed& feed = feeds[f];
    std::vector<uint32_t> at;
    uint32_t count = 0;
    while (count < chunk && rows < engine.max_rows() && feed.next + count < feed.tokens.size()) {
      if (feed.wanted.contains(feed.next + count)) {
        if (samples == engine.max_samples()) break;
        at.push_back(count);
        ++samples;
      }
      ++count;
      ++rows;
    }
    if (count == 0) continue;
    batch.sample_at.push_back(std::move(at));
    batch.requests.push_back({feed.slot, std::span(feed.tokens).subspan(feed.next, count), batch.sample_at.back(), greedy_sampling()});
    batch.feed.push_back(f);
  }
  return batch;
}

}  // namespace

TestBundle::TestBundle(CompileOptions options) {
  path_ = folder_.path() / "bundle";
  options.out = path_;
  options.verifier = PLOW_VERIFY;
  Silent silent;
  must(compile_model(options, silent));
}

Engine TestBundle::engine(IsaLevel isa) const {
  EngineOptions options;
  options.isa = isa;
  options.verify_tape = true;
  options.require_receipt = std::string_view(PLOW_VERIFY) != "";
  return must(Engine::load(path_, options));
}

const TestBundle& shared_bundle(SharedBundles& bundles, const std::string& name, const CompileOptions& options) {
  return bundles.try_emplace(name, options).first->second;
}

std::vector<LogitsByPosition> teacher_forced(Engine& engine, const std::vector<const GoldenPrompt*>& prompts, uint32_t chunk) {
  std::vector<Feed> feeds;
  for (const GoldenPrompt* prompt : prompts) {
    Feed feed;
    feed.slot = must(engine.open_slot());
    for (const GoldenLogits& logits : prompt->logits) feed.wanted.insert(logits.position);
    feed.tokens = prompt->sequence();
    feed.tokens.resize(*feed.wanted.rbegin() + 1);
    feeds.push_back(std::move(feed));
  }
  std::vector<LogitsByPosition> found(prompts.size());
  for (;;) {
    const Batch batch = next_batch(engine, feeds, chunk);
    if (batch.requests.empty()) break;
    const StepResult result = must(engine.step(batch.requests, {1, true}));
    for (size_t s = 0; s < result.tokens.size(); ++s) {
      const size_t f = batch.feed[result.tokens[s].request];
      const auto first = result.logits.begin() + static_cast<ptrdiff_t>(s * engine.vocab());
      found[f][feeds[f].next + result.tokens[s].row] = std::vector<float>(first, first + engine.vocab());
    }
    for (size_t r = 0; r < batch.requests.size(); ++r) feeds[batch.feed[r]].next += static_cast<uint32_t>(batch.requests[r].tokens.size());
  }
  for (const Feed& feed : feeds) engine.close_slot(feed.slot);
  return found;
}

double worst_error(const GoldenPrompt& prompt, const LogitsByPosition& logits) {
  double worst = 0;
  for (const GoldenLogits& golden : prompt.logits) {
    const auto found = logits.find(golden.position);
    if (found == logits.end()) return INFINITY;
    for (size_t i = 0; i < golden.ids.size(); ++i) {
      const double error = std::abs(found->second[golden.ids[i]] - golden.logits[i]);
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
  }
  return worst;
}

GreedyOutcome greedy_outcome(Engine& engine, const std::vector<GoldenPrompt>& prompts, uint32_t chunk) {
  GreedyOutcome outcome;
  // Sequences are taken in groups that fit the slots; within a group prompts and answers of different lengths ride in the same steps.
  for (size_t first = 0; first < prompts.size(); first += engine.n_slots()) {
    const size_t count = std::min<size_t>(engine.n_slots(), prompts.size() - first);
    std::vector<Feed> feeds;
    for (size_t p = first; p < first + count; ++p) {
      Feed feed;
      feed.slot = must(engine.open_slot());
      feed.tokens = prompts[p].sequence();
      feed.tokens.pop_back();  // the last answer token is compared and not fed
      for (size_t t = 0; t < prompts[p].greedy.size(); ++t) feed.wanted.insert(static_cast<uint32_t>(prompts[p].ids.size() - 1 + t));
      feeds.push_back(std::move(feed));
    }
    for (;;) {
      Batch batch = next_batch(engine, feeds, chunk);
      if (batch.requests.empty()) break;
      const StepResult result = must(engine.step(batch.requests));
      for (const StepToken& token : result.tokens) {
        const size_t f = batch.feed[token.request];
        const GoldenPrompt& prompt = prompts[first + f];
        const size_t t = feeds[f].next + token.row + 1 - prompt.ids.size();
        ++outcome.tokens;
        if (token.token != prompt.greedy[t]) outcome.divergences.push_back({first + f, t, prompt.margins[t]});
      }
      for (size_t r = 0; r < batch.requests.size(); ++r) feeds[batch.feed[r]].next += static_cast<uint32_t>(batch.requests[r].tokens.size());
    }
    for (const Feed& feed : feeds) engine.close_slot(feed.slot);
  }
  return outcome;
}

}  // namespace plow
