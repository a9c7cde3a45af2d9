// A grammar compiled to a pushdown automaton: a nondeterministic automaton a rule (K. Thompson, "Regular
// expression search algorithm", CACM 11(6), 1968), whose calls of rules push where to go on.
//
// What is in it can end: choices that nothing finishes are left out, so every text that the automaton has not
// refused can be completed.
#pragma once

#include "base/error.h"
#include "grammar/grammar.h"

#include <array>
#include <cstdint>
#include <vector>

namespace plow {

struct Automaton {
  enum class Kind : uint8_t {
    kSplit,   // goes on at a and at b without a byte; kNowhere: not there
    kBytes,   // takes a byte of sets[a], goes on at b
    kCall,    // runs rule a, goes on at b
    kReturn,  // the end of a rule
  };
  static constexpr uint32_t kNowhere = 0xffffffffu;
  struct State {
    Kind kind;
    uint32_t a, b;
  };

  std::vector<State> states;
  std::vector<uint32_t> entries;  // first state by rule
  uint32_t root = 0;              // rule
  std::vector<ByteSet> sets;
  // Bytes that no set tells apart are one class.
  std::array<uint8_t, 256> class_of{};
  std::vector<uint8_t> member_of;  // a byte of each class
};

// States of an automaton. A string of up to 10,000 characters takes 20,000; at 12 bytes each this is 2.4 MB.
constexpr uint32_t kMostAutomatonStates = 200'000;

// Errors (kInput): a rule without a definition, a rule that begins with itself, nothing that matches at all;
// (kDoesNotFit) more states than allowed.
Result<Automaton> compile_grammar(const Grammar& grammar, uint32_t most_states = kMostAutomatonStates);

}  // namespace plow
