// A GPU made of fibers, for tests: every thread of every team is a fiber of one operating system thread, and
// they run in an order that a seed decides, from one meeting point to the next. What a body forgets to settle
// shows as a wrong result under some seed; threads that wait at different meeting points for ever end the
// test with a message.
#pragma once

#include "interp/host_words.h"
#include "interp/tape.h"
#include "interp/team.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace plow::emulated {

// Where threads meet: each arrival waits until `n` have come.
struct Meeting {
  uint32_t n = 0;
  std::vector<uint32_t> waiting;  // fibers
};

// Leaves the stack that runs for the one that stopped at `to`, and writes where this one stopped to `from`;
// the registers that a function must keep (System V ABI of x86-64, 3.2.1) lie on the stack that is left.
// swapcontext would do, but makes a system call a switch, for signal masks that all fibers share: a third of
// the time of these tests.
[[gnu::naked, gnu::noinline]] inline void switch_stack(void** /*from*/, void* /*to*/) {
  asm("pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15;"
      "movq %rsp, (%rdi); movq %rsi, %rsp;"
      "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp; ret");
}
constexpr size_t kKeptRegisters = 6;

struct alignas(16) Stack {
  static constexpr size_t kWords = 12 * 1024;
  uintptr_t words[kWords];
};

// A copy on its way; from null: zeros.
struct Staged {
  void* to;
  const void* from;
  size_t bytes;
};

struct Fiber {
  void* stopped_at = nullptr;
  std::vector<Staged> staged;
  std::vector<size_t> groups;  // ends, in `staged`
  uint32_t index = 0, team = 0, thread = 0, lanes = 0, threads = 0;
  bool waits = false, done = false;
};

// All teams of one launch.
class EmulatedGpu {
 public:
  struct Team {
    Meeting all;       // threads of the team
    Meeting everyone;  // those that play its tape, too
    std::vector<Meeting> waves;
    uint32_t agreed = 0;
    bool refused = false;
    std::vector<uint64_t> exchange;                  // by thread
    std::vector<std::array<uint32_t, 12>> fragments;  // by thread: of A and of B of its wave's matrix unit
    std::vector<unsigned char> shared_bytes;
    unsigned char* shared = nullptr;
  };

  // `tape_threads`: of each team, after its n_threads.
  EmulatedGpu(uint32_t n_teams, uint32_t n_threads, uint32_t tape_threads, uint32_t lanes, uint64_t shared_bytes,
              uint64_t seed)
      : teams_(n_teams), random_(seed) {
    for (uint32_t t = 0; t < n_teams; ++t) {
      Team& team = teams_[t];
      team.all.n = n_threads;
      const uint32_t all_threads = n_threads + tape_threads;
      team.everyone.n = all_threads;
      team.waves.assign(all_threads / lanes, Meeting{lanes, {}});
      team.exchange.resize(all_threads);
      team.fragments.resize(all_threads);
      team.shared_bytes.assign(shared_bytes + 256, 0xcc);
      const auto address = reinterpret_cast<uintptr_t>(team.shared_bytes.data());
      team.shared = team.shared_bytes.data() + (256 - address % 256);
      for (uint32_t i = 0; i < all_threads; ++i) {
        auto fiber = std::make_unique<Fiber>();
        fiber->index = static_cast<uint32_t>(fibers_.size());
        fiber->team = t;
        fiber->thread = i;
        fiber->lanes = lanes;
        fiber->threads = n_threads;
        fibers_.push_back(std::move(fiber));
      }
    }
    // Not cleared, so that pages that no fiber reaches cost nothing.
    stacks_ = std::make_unique_for_overwrite<Stack[]>(fibers_.size());
  }

  // Runs body(team, shared memory) on every thread until all have returned.
  void run(const std::function<void(uint32_t, unsigned char*)>& body) {
    body_ = &body;
    for (size_t i = 0; i < fibers_.size(); ++i) {
      // As if it had been stopped on entry to enter(), where a stack is 8 past a multiple of 16.
      uintptr_t* frame = stacks_[i].words + Stack::kWords - 2;
      *frame = reinterpret_cast<uintptr_t>(&EmulatedGpu::enter);
      fibers_[i]->stopped_at = frame - kKeptRegisters;
    }
    current_gpu() = this;
    size_t left = fibers_.size();
    ready_.resize(left);
    std::iota(ready_.begin(), ready_.end(), 0u);
    std::vector<uint32_t> order;
    while (left > 0) {
      if (ready_.empty()) {
        std::fprintf(stderr, "emulated GPU: %zu threads wait at meeting points that others never reach\n",
                     left);
        std::abort();
      }
      order.swap(ready_);
      ready_.clear();
      std::shuffle(order.begin(), order.end(), random_);
      for (const uint32_t i : order) {
        Fiber& fiber = *fibers_[i];
        current() = &fiber;
        switch_stack(&scheduler_, fiber.stopped_at);
        if (fiber.done) --left;
        if (!fiber.done && !fiber.waits) ready_.push_back(i);
      }
    }
    current_gpu() = nullptr;
  }

  // Of the fiber that runs.
  static Fiber*& current() {
    thread_local Fiber* fiber = nullptr;
    return fiber;
  }
  static EmulatedGpu*& current_gpu() {
    thread_local EmulatedGpu* gpu = nullptr;
    return gpu;
  }
  Team& team() { return teams_[current()->team]; }

  void meet(Meeting& meeting) {
    if (meeting.waiting.size() + 1 == meeting.n) {
      for (const uint32_t i : meeting.waiting) fibers_[i]->waits = false;
      ready_.insert(ready_.end(), meeting.waiting.begin(), meeting.waiting.end());
      meeting.waiting.clear();
    } else {
      meeting.waiting.push_back(current()->index);
      current()->waits = true;
    }
    yield();
  }
  void yield() { switch_stack(&current()->stopped_at, scheduler_); }
  uint32_t random_below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

 private:
  static void enter() {
    EmulatedGpu& gpu = *current_gpu();
    Fiber& fiber = *current();
    (*gpu.body_)(fiber.team, gpu.teams_[fiber.team].shared);
    fiber.done = true;
    gpu.yield();
  }

  std::vector<Team> teams_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::unique_ptr<Stack[]> stacks_;  // by fiber
  std::vector<uint32_t> ready_;      // fibers that go on in the next round
  std::mt19937_64 random_;
  const std::function<void(uint32_t, unsigned char*)>* body_ = nullptr;
  void* scheduler_ = nullptr;  // where run() stopped
};

// The primitives of prims.h and team.h on it.
template <uint32_t kLanesOfWave>
struct EmulatedTeam : dev::HostWords {
  static constexpr uint32_t kLanes = kLanesOfWave;
  using Vec = float;
  using Mask = bool;

  static EmulatedGpu& gpu() { return *EmulatedGpu::current_gpu(); }
  static uint32_t thread() { return EmulatedGpu::current()->thread; }
  static uint32_t n_threads() { return EmulatedGpu::current()->threads; }
  static void settle() { gpu().meet(gpu().team().all); }
  static void settle_wave() { gpu().meet(gpu().team().waves[thread() / kLanes]); }
  static uint32_t agree(uint32_t value) {
    if (thread() == 0) gpu().team().agreed = value;
    settle();
    const uint32_t agreed = gpu().team().agreed;
    settle();
    return agreed;
  }
  static bool all(bool value) {
    auto& refused = gpu().team().refused;
    if (!value) refused = true;
    settle();
    const bool result = !refused;
    settle();
    if (thread() == 0) refused = false;
    settle();
    return result;
  }
  template <class T>
  static T lane_xor(T value, uint32_t mask) {
    auto& exchange = gpu().team().exchange;
    const uint32_t me = thread();
    std::memcpy(&exchange[me], &value, sizeof(T));
    settle_wave();
    T other;
    std::memcpy(&other, &exchange[me ^ mask], sizeof(T));
    settle_wave();
    return other;
  }

  // What was staged comes when the thread waits for it, no sooner.
  template <uint32_t kBytes>
  static void stage(void* to, const void* from, bool exists) {
    EmulatedGpu::current()->staged.push_back({to, exists ? from : nullptr, kBytes});
    std::memset(to, 0xcc, kBytes);
  }
  static void commit_stage() {
    Fiber& fiber = *EmulatedGpu::current();
    fiber.groups.push_back(fiber.staged.size());
  }
  static void await_stage(bool but_the_last) {
    Fiber& fiber = *EmulatedGpu::current();
    const size_t keep = but_the_last ? 1 : 0;
    if (fiber.groups.size() <= keep) return;
    const size_t n = fiber.groups[fiber.groups.size() - 1 - keep];
    for (size_t i = 0; i < n; ++i) {
      const Staged& one = fiber.staged[i];
      if (one.from == nullptr) {
        std::memset(one.to, 0, one.bytes);
      } else {
        std::memcpy(one.to, one.from, one.bytes);
      }
    }
    fiber.staged.erase(fiber.staged.begin(), fiber.staged.begin() + static_cast<ptrdiff_t>(n));
    fiber.groups.clear();
    if (keep == 1) fiber.groups.push_back(fiber.staged.size());
  }

  static uint32_t load_acquire_system(const uint32_t* word) { return load_acquire(word); }
  static void store_release_system(uint32_t* word, uint32_t value) { store_release(word, value); }
  static void add_relaxed(uint32_t* word, uint32_t value) { *word += value; }
  static void or_relaxed(uint32_t* word, uint32_t value) { *word |= value; }

  static void pause() { gpu().yield(); }
  static void yield() { std::this_thread::yield(); }
  static uint64_t clock_ns() {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now().time_since_epoch())
                                     .count());
  }
  [[noreturn]] static void trap() { std::abort(); }

  static float zero() { return 0; }
  static float set(float x) { return x; }
  static float add(float a, float b) { return a + b; }
  static float sub(float a, float b) { return a - b; }
  static float mul(float a, float b) { return a * b; }
  static float div(float a, float b) { return a / b; }
  static float fma(float a, float b, float c) { return std::fma(a, b, c); }
  static float max(float a, float b) { return a > b ? a : b; }
  static float min(float a, float b) { return a < b ? a : b; }
  static float abs(float x) { return std::fabs(x); }
  static float copy_sign(float magnitude, float sign) { return std::copysign(magnitude, sign); }
  static float round(float x) { return std::nearbyint(x); }
  static float times_power(float x, float power) { return std::ldexp(x, static_cast<int>(power)); }
  static bool less(float a, float b) { return a < b; }
  static float select(bool mask, float a, float b) { return mask ? a : b; }
  static void sin_cos(double x, double* sine, double* cosine) {
    *sine = std::sin(x);
    *cosine = std::cos(x);
  }
  static double log(double x) { return std::log(x); }
  static float sqrt(float x) { return std::sqrt(x); }
};

// The same with a matrix unit.
struct EmulatedMatrixTeam : EmulatedTeam<64> {
  static void multiply_add(const uint32_t (&a)[4], const uint32_t (&b)[4], float (&c)[4]) {
    auto& fragments = gpu().team().fragments;
    const uint32_t me = thread() % kLanes, first = thread() - me;
    std::copy_n(a, 4, fragments[thread()].begin());
    std::copy_n(b, 4, fragments[thread()].begin() + 4);
    settle_wave();
    // Column k of row `row` of A (matrix 0), or row k of column `row` of B (1).
    const auto value = [&](uint32_t matrix, uint32_t row, uint32_t k) {
      const uint32_t word = fragments[first + row + 16 * (k / 8)][4 * matrix + k % 8 / 2];
      return dev::bits_to<float>(k % 2 == 0 ? word << 16 : word & 0xffff0000u);
    };
    for (uint32_t i = 0; i < 4; ++i)
      for (uint32_t k = 0; k < 32; ++k)
        c[i] = std::fma(value(0, 4 * (me / 16) + i, k), value(1, me % 16, k), c[i]);
    settle_wave();
  }
};

// Warps of 32 lanes with a matrix unit, three of them a team.
struct EmulatedWarpTeam : EmulatedTeam<32> {
  static constexpr uint32_t kWaves = 3, kMatrixHeadDim = 128;

  static void multiply_add(const uint32_t (&a)[4], uint32_t b0, uint32_t b1, float (&c)[4]) {
    auto& fragments = gpu().team().fragments;
    const uint32_t me = thread() % kLanes, first = thread() - me;
    std::copy_n(a, 4, fragments[thread()].begin());
    fragments[thread()][4] = b0;
    fragments[thread()][5] = b1;
    settle_wave();
    const auto half = [](uint32_t word, uint32_t k) {
      return dev::bits_to<float>(k % 2 == 0 ? word << 16 : word & 0xffff0000u);
    };
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t row = me / 4 + 8 * (i / 2), column = me % 4 * 2 + i % 2;
      for (uint32_t k = 0; k < 16; ++k) {
        const auto& of_a = fragments[first + 4 * (row % 8) + k / 4];
        const auto& of_b = fragments[first + 4 * column + k / 4];
        c[i] = std::fma(half(of_a[row / 8 + k % 4 / 2 * 2], k), half(of_b[4 + k % 4 / 2], k), c[i]);
      }
    }
    settle_wave();
  }
  using TeamAddress = const unsigned char*;
  static TeamAddress team_address(const void* p) { return static_cast<TeamAddress>(p); }
  template <uint32_t kOffset>
  static void load_team(TeamAddress from, uint32_t (&to)[4]) {
    std::memcpy(to, from + kOffset, sizeof(to));
  }
  template <bool kTransposed>
  static void load_matrices(TeamAddress from, uint32_t (&to)[4]) {
    auto& exchange = gpu().team().exchange;
    const uint32_t me = thread() % kLanes, first = thread() - me;
    std::memcpy(&exchange[thread()], &from, sizeof(from));
    settle_wave();
    for (uint32_t m = 0; m < 4; ++m) {
      uint16_t halves[2];
      for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t row = kTransposed ? me % 4 * 2 + i : me / 4, column = kTransposed ? me / 4 : me % 4 * 2 + i;
        TeamAddress at;
        std::memcpy(&at, &exchange[first + 8 * m + row], sizeof(at));
        std::memcpy(&halves[i], at + 2 * column, sizeof(halves[i]));
      }
      to[m] = halves[0] | static_cast<uint32_t>(halves[1]) << 16;
    }
    settle_wave();
  }
};

// The same with a tape. A piece comes some time after it was asked for; until then its place holds garbage.
struct EmulatedTapeTeam : EmulatedWarpTeam {
  static constexpr uint32_t kTapeSlots = kWaves;
  struct Barrier {
    uint32_t arrivals, to_come, phase;
    const unsigned char* from;  // of a piece that is on its way
    unsigned char* to;
    uint32_t bytes, looks_left;
  };

  static void make_barrier(Barrier* barrier, uint32_t arrivals) { *barrier = {arrivals, arrivals, 0, {}, {}, 0, 0}; }
  static void drop_barrier(Barrier* barrier) { *barrier = {}; }
  static void arrive(Barrier* barrier) {
    if (--barrier->to_come > 0) return;
    barrier->to_come = barrier->arrivals;
    ++barrier->phase;
  }
  static bool passed(Barrier* barrier, uint32_t parity) {
    gpu().yield();
    if (barrier->from != nullptr && barrier->looks_left-- == 0) {
      std::memcpy(barrier->to, barrier->from, barrier->bytes);
      barrier->from = nullptr;
      arrive(barrier);
    }
    return barrier->phase % 2 != parity;
  }
  static void copy_piece(unsigned char* to, const unsigned char* from, uint32_t bytes, Barrier* barrier) {
    std::memset(to, 0xcc, bytes);
    barrier->from = from;
    barrier->to = to;
    barrier->bytes = bytes;
    barrier->looks_left = gpu().random_below(8);
  }
  static uint32_t team_word(const uint32_t* word) { return *word; }
  static void set_team_word(uint32_t* word, uint32_t value) { *word = value; }
  template <class T>
  static T from_lane(T value, uint32_t lane) {
    auto& exchange = gpu().team().exchange;
    std::memcpy(&exchange[thread()], &value, sizeof(T));
    settle_wave();
    T result;
    std::memcpy(&result, &exchange[thread() / kLanes * kLanes + lane], sizeof(T));
    settle_wave();
    return result;
  }
};

// The same with warps that multiply as a group, and one that does not.
struct EmulatedGroupTeam : EmulatedTapeTeam {
  static constexpr uint32_t kWaves = 5, kTapeSlots = kWaves, kGroupThreads = 128;

  static const unsigned char* group_operand(const unsigned char* memory) { return memory; }
  static void group_begin() {}
  static void group_commit() {}
  template <uint32_t kSets>
  static void group_await() {}
  static void staged_for_group() {}
  static void group_multiply_add(const uint32_t (&a)[4], const unsigned char* b, uint32_t slice, bool add, float (&c)[128]) {
    auto& fragments = gpu().team().fragments;
    const uint32_t me = thread() % kLanes, first = thread() - me;
    std::copy_n(a, 4, fragments[thread()].begin());
    settle_wave();
    const auto half = [](uint32_t word, uint32_t k) {
      return dev::bits_to<float>(k % 2 == 0 ? word << 16 : word & 0xffff0000u);
    };
    for (uint32_t i = 0; i < 128; ++i) {
      const uint32_t u = i / 2 % 2, column = i / 4 * 8 + me % 4 * 2 + i % 2, in_atom = column % kAtomRows;
      if (!add) c[i] = 0;
      for (uint32_t k = 0; k < 16; ++k) {
        const uint32_t unit = slice * 2 + k / 8;
        uint16_t weight;
        std::memcpy(&weight,
                    b + column / kAtomRows * kAtomBytes + in_atom * kAtomRowBytes + (unit ^ in_atom) * kAtomUnitBytes + k % 8 * 2,
                    sizeof(weight));
        const uint32_t word = fragments[first + me / 4 * 4 + k % 8 / 2][u + k / 8 * 2];
        c[i] = std::fma(half(word, k), dev::bits_to<float>(static_cast<uint32_t>(weight) << 16), c[i]);
      }
    }
    settle_wave();
  }
};

}  // namespace plow::emulated
