// A text against an automaton. The sets of ways in which the automaton may have read the text are numbered
// when they are met, and so are their successors: most bytes cost one look into a table.
//
// One thread uses a matcher.
#pragma once

#include "grammar/automaton.h"

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace plow {

class Matcher {
 public:
  using State = uint32_t;
  static constexpr State kDead = 0;  // no text of the grammar begins like this

  explicit Matcher(std::shared_ptr<const Automaton> automaton);

  State start() const { return start_; }
  // The state behind one more byte. kDead too when overflowed() has become true.
  State step(State state, uint8_t byte) {
    const uint32_t known = next_[size_t{state} * classes_ + automaton_->class_of[byte]];
    return known != kUnknown ? known : make(state, automaton_->class_of[byte]);
  }
  bool may_end(State state) const { return sets_[state].may_end; }
  bool may_go_on(State state) const { return sets_[state].n > 0; }

  // A set of ways, or all that is kept, grew beyond its bound: states say nothing any more.
  bool overflowed() const { return overflowed_; }
  bool nearly_full() const { return kept() > kMostKept / 2; }
  // Forgets all but this state, whose new number is returned.
  State forget_but(State state);

 private:
  static constexpr uint32_t kUnknown = 0xffffffffu;
  // Ways to have read one text. JSON has a handful; a grammar with so many is one made to hurt.
  static constexpr size_t kMostWays = 2000;
  // Words of all tables: 64 MB.
  static constexpr size_t kMostKept = size_t{16} << 20;

  struct Way {       // what is to be read next, and where to go on when its rule ends
    uint32_t at;     // of Automaton::states, of kind kBytes
    uint32_t stack;  // into frames_
    auto operator<=>(const Way&) const = default;
  };
  struct Frame {
    uint32_t at;      // to go on at
    uint32_t parent;  // into frames_
  };
  struct Set {
    uint32_t first, n;  // of ways_
    bool may_end;
  };

  State make(State from, uint8_t byte_class);
  State close_and_number(std::vector<Way> open);
  uint32_t push(uint32_t at, uint32_t parent);
  size_t kept() const { return next_.size() + 2 * ways_.size() + 8 * frames_.size(); }
  void reset();

  std::shared_ptr<const Automaton> automaton_;
  size_t classes_;
  std::vector<Set> sets_;  // by State
  std::vector<Way> ways_;
  std::vector<uint32_t> next_;  // [states][classes]
  std::vector<Frame> frames_;   // frames_[0]: the bottom
  std::unordered_map<uint64_t, uint32_t> frame_numbers_;
  std::unordered_multimap<uint64_t, State> set_numbers_;  // by hash
  std::unordered_set<uint64_t> seen_;                     // while a set is closed
  State start_ = kDead;
  bool overflowed_ = false;
};

}  // namespace plow
