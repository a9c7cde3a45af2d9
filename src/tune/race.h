// Two engines that do the same work in turns, and which of them is faster.
#pragma once

#include "runtime/engine.h"
#include "tune/calibrate.h"

#include <vector>

namespace plow {

// One kind of step, run again and again from the same place.
struct RaceWork {
  uint32_t rows = 1;          // of the step
  bool one_sequence = false;  // all rows are of one sequence, its last one picks a token; else each is of its
                              // own and picks one
  uint32_t context = 128;     // positions before
};

// Steps of an engine that was brought to the place where a work begins.
class Racer {
 public:
  // Errors: those of Engine::step; kDoesNotFit, the engine is too small for the work.
  static Result<Racer> create(Engine& engine, const RaceWork& work);

  // The work once; nanoseconds by the wall clock.
  Result<double> run();
  // Gives its slots back. Nothing can be run after it.
  void finish();
  // The work once with its logits, for comparing bits.
  Result<std::vector<float>> logits();

 private:
  Racer(Engine& engine, const RaceWork& work) : engine_(&engine), work_(work) {}
  Status fill_context();
  Result<StepResult> step(bool logits);

  Engine* engine_;
  RaceWork work_;
  std::vector<uint32_t> slots_;
  std::vector<std::vector<uint32_t>> tokens_;  // by slot: the step's
};

struct RaceTime {
  double ns = 0;      // the median of the fastest quarter of the steps
  double spread = 0;  // (the slowest of that quarter - the fastest step) / the fastest
  uint32_t count = 0;
};

// What else runs on the machine can only make a step longer, so the slower three quarters say nothing.
RaceTime summarise_times(std::vector<double> times);

struct RaceResult {
  RaceTime a, b;
  // b is faster (or slower) than a by more than either's spread.
  bool b_wins() const { return b.ns * (1 + std::max(a.spread, b.spread)) < a.ns; }
  bool a_wins() const { return a.ns * (1 + std::max(a.spread, b.spread)) < b.ns; }
};

// Turn by turn until `seconds` are over, at least 8 turns; when b is clearly slower after 3, no longer. Of
// several works the times of a turn are added up.
Result<RaceResult> race(std::vector<Racer>& a, std::vector<Racer>& b, double seconds);

}  // namespace plow
