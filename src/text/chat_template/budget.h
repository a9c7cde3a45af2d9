// How a rendering fails, and what it may spend. Inside this folder a failure is an exception (Failure), which
// compile() and render() turn into an Error: an interpreter that tests a Result after every operand is twice
// as long.
#pragma once

#include "text/chat_template/chat_template.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace plow::jinja {

// A mistake in the template, or one that the template's values lead to. `line` is 0 where only the
// interpreter knows it.
struct Failure {
  std::string message;
  uint32_t line = 0;
};

[[noreturn]] inline void fail(std::string message) { throw Failure{std::move(message)}; }

class Budget {
 public:
  explicit Budget(const RenderLimits& limits) : limits_(limits) {
    limits_.max_string_bytes = std::min(limits_.max_string_bytes, kMaxStringBytes);
  }

  void steps(uint64_t n) {
    steps_ += n;
    if (steps_ > limits_.max_steps) fail("the template takes too long; is there a loop that does not end?");
  }
  // `n` bytes or items are looked at or copied.
  void touch(uint64_t n) { steps(1 + n / 16); }
  // `n` more bytes of values.
  void memory(uint64_t n) {
    memory_ += n;
    if (memory_ > limits_.max_memory_bytes) fail("the template uses too much memory");
  }
  void string_size(uint64_t n) const {
    if (n > limits_.max_string_bytes) fail("the template makes a string that is too long");
  }

  // One level of nested evaluation, as long as the object lives.
  class Depth {
   public:
    explicit Depth(Budget& budget) : budget_(budget) {
      if (++budget_.depth_ > budget_.limits_.max_depth) {
        --budget_.depth_;
        fail("the template nests too deeply; is there a macro that calls itself without end?");
      }
    }
    ~Depth() { --budget_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Budget& budget_;
  };

 private:
  static constexpr uint64_t kMaxStringBytes = uint64_t{1} << 31;  // ByteRange has 32-bit offsets

  RenderLimits limits_;
  uint64_t steps_ = 0;
  uint64_t memory_ = 0;
  uint32_t depth_ = 0;
};

}  // namespace plow::jinja
