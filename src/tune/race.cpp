#include "tune/race.h"

#include <algorithm>
#include <chrono>

namespace plow {

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kLeastTurns = 8;
// A second look at what is so much slower in its best turn is wasted.
constexpr uint32_t kTurnsToLose = 3;
constexpr double kClearlySlower = 1.1;

// Ids spread over the vocabulary, the same in every run.
std::vector<uint32_t> filler(uint32_t count, uint32_t vocab, uint32_t salt) {
  std::vector<uint32_t> tokens;
  for (uint32_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<uint32_t>((uint64_t{i} * 7919 + salt * 104729 + 17) % vocab));
  return tokens;
}

}  // namespace

Result<Racer> Racer::create(Engine& engine, const RaceWork& work) {
  Racer racer(engine, work);
  const uint32_t sequences = work.one_sequence ? 1 : work.rows;
  for (uint32_t i = 0; i < sequences; ++i) {
    PLOW_TRY(const uint32_t slot, engine.open_slot());
    racer.slots_.push_back(slot);
    racer.tokens_.push_back(filler(work.one_sequence ? work.rows : 1, engine.vocab(), 1000 + i));
  }
  PLOW_TRY_STATUS(racer.fill_context());
  return racer;
}

Status Racer::fill_context() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    const std::vector<uint32_t> tokens = filler(work_.context, engine_->vocab(), static_cast<uint32_t>(i));
    for (size_t begin = 0; begin < tokens.size(); begin += engine_->max_rows()) {
      const size_t count = std::min<size_t>(tokens.size() - begin, engine_->max_rows());
      const StepRequest request{slots_[i], std::span(tokens).subspan(begin, count), {}, greedy_sampling()};
      if (auto done = engine_->step(std::span(&request, 1)); !done.ok()) return done.error();
    }
  }
  return {};
}

// Windows let blocks go, but no more than a step's rows further on: the runtime keeps what a rewind by so
// much needs, or refuses, and then the context is computed again.
Result<StepResult> Racer::step(bool logits) {
  std::vector<StepRequest> requests;
  const uint32_t last = work_.one_sequence ? work_.rows - 1 : 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!engine_->rewind(slots_[i], work_.context).ok()) {
      engine_->close_slot(slots_[i]);
      PLOW_TRY(slots_[i], engine_->open_slot());
    }
    requests.push_back({slots_[i], tokens_[i], std::span(&last, 1), greedy_sampling()});
  }
  if (engine_->position(slots_.front()) < work_.context) {
    for (const uint32_t slot : slots_) PLOW_TRY_STATUS(engine_->rewind(slot, 0));
    PLOW_TRY_STATUS(fill_context());
  }
  StepOptions options;
  options.logits = logits;
  return engine_->step(requests, options);
}

Result<double> Racer::run() {
  for (const uint32_t slot : slots_) {
    if (!engine_->rewind(slot, work_.context).ok()) {
      PLOW_TRY(const StepResult again, step(false));  // brings the context back
      (void)again;
    }
  }
  const auto begin = Clock::now();
  PLOW_TRY(const StepResult result, step(false));
  (void)result;
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

void Racer::finish() {
  for (const uint32_t slot : slots_) engine_->close_slot(slot);
  slots_.clear();
}

Result<std::vector<float>> Racer::logits() {
  PLOW_TRY(StepResult result, step(true));
  return std::move(result.logits);
}

RaceTime summarise_times(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const size_t quarter = std::max<size_t>(1, times.size() / 4);
  return {times[quarter / 2], (times[quarter - 1] - times[0]) / times[0],
          static_cast<uint32_t>(times.size())};
}

Result<RaceResult> race(std::vector<Racer>& a, std::vector<Racer>& b, double seconds) {
  const auto turn = [](std::vector<Racer>& racers) -> Result<double> {
    double total = 0;
    for (Racer& racer : racers) {
      PLOW_TRY(const double ns, racer.run());
      total += ns;
    }
    return total;
  };
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::vector<double> times_a, times_b;
  while (times_a.size() < kLeastTurns || Clock::now() < end) {
    // Whoever comes second finds a warm machine, so they take turns at that, too.
    const bool a_first = times_a.size() % 2 == 0;
    PLOW_TRY(const double first, turn(a_first ? a : b));
    PLOW_TRY(const double second, turn(a_first ? b : a));
    times_a.push_back(a_first ? first : second);
    times_b.push_back(a_first ? second : first);
    const auto best = [](const std::vector<double>& times) {
      return *std::min_element(times.begin(), times.end());
    };
    if (times_a.size() == kTurnsToLose && best(times_b) > kClearlySlower * best(times_a)) break;
  }
  return RaceResult{summarise_times(std::move(times_a)), summarise_times(std::move(times_b))};
}

}  // namespace plow
