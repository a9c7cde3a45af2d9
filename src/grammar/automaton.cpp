#include "grammar/automaton.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace plow {
namespace {

using Kind = Grammar::Kind;
using Node = Grammar::Node;

// For every expression whether a property holds that comes up from the leaves: of a sequence when all parts
// have it, of the others when one has. Linear in the grammar's size.
template <class Leaf>
std::vector<bool> upward(const Grammar& grammar, const Leaf& leaf) {
  const auto nodes = grammar.nodes();
  std::vector<std::vector<uint32_t>> parents(nodes.size()), users(grammar.rules().size());
  std::vector<uint32_t> missing(nodes.size());
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    for (const uint32_t child : grammar.children_of(nodes[i])) parents[child].push_back(i);
    if (nodes[i].kind == Kind::kRule) users[nodes[i].a].push_back(i);
    missing[i] = nodes[i].kind == Kind::kSequence ? nodes[i].n_children : 1;
  }
  std::vector<std::vector<uint32_t>> defines(nodes.size());
  for (uint32_t r = 0; r < grammar.rules().size(); ++r) defines[grammar.rules()[r]].push_back(r);
  std::vector<bool> holds(nodes.size(), false);
  std::vector<uint32_t> todo;
  const auto found = [&](uint32_t i) {
    if (!holds[i]) todo.push_back(i);
    holds[i] = true;
  };
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    if (missing[i] == 0 || leaf(nodes[i])) found(i);
  }
  while (!todo.empty()) {
    const uint32_t i = todo.back();
    todo.pop_back();
    for (const uint32_t parent : parents[i]) {
      if (missing[parent] > 0 && --missing[parent] == 0) found(parent);
    }
    for (const uint32_t rule : defines[i]) std::ranges::for_each(users[rule], found);
  }
  return holds;
}

class Compiler {
 public:
  Compiler(const Grammar& grammar, uint32_t most_states) : grammar_(grammar), most_states_(most_states) {}

  Result<Automaton> run() {
    for (const uint32_t body : grammar_.rules()) {
      if (body == Grammar::kUndefined) return input_error("A rule of the grammar is used and not defined.");
    }
    productive_ = upward(grammar_, [&](const Node& node) {
      return (node.kind == Kind::kBytes && !grammar_.sets()[node.a].empty()) ||
             (node.kind == Kind::kRepeat && node.a == 0);
    });
    nullable_ = upward(grammar_, [](const Node& node) { return node.kind == Kind::kRepeat && node.a == 0; });
    if (!productive_[grammar_.rules()[grammar_.root]])
      return input_error("Nothing matches the grammar: there is no text that it lets end.");
    out_.root = grammar_.root;
    out_.sets.assign(grammar_.sets().begin(), grammar_.sets().end());
    dead_ = add(Automaton::Kind::kSplit, Automaton::kNowhere, Automaton::kNowhere);
    for (const uint32_t body : grammar_.rules()) {
      out_.entries.push_back(compile(body, add(Automaton::Kind::kReturn, 0, 0)));
      if (too_large_) {
        return does_not_fit(fmt::format(
            "The grammar needs more than {} states. Lower its bounds of repetition.", most_states_));
      }
    }
    PLOW_TRY_STATUS(refuse_left_recursion());
    classify_bytes();
    return std::move(out_);
  }

 private:
  uint32_t add(Automaton::Kind kind, uint32_t a, uint32_t b) {
    too_large_ |= out_.states.size() >= most_states_;
    if (too_large_) return 0;
    out_.states.push_back({kind, a, b});
    return static_cast<uint32_t>(out_.states.size() - 1);
  }

  // The state that matches the expression and goes on at `next`. The parsers bound how deep this recurs.
  uint32_t compile(uint32_t expr, uint32_t next) {
    if (too_large_) return 0;
    if (!productive_[expr]) return dead_;
    const Node& node = grammar_.nodes()[expr];
    const auto children = grammar_.children_of(node);
    switch (node.kind) {
      case Kind::kBytes:
        return add(Automaton::Kind::kBytes, node.a, next);
      case Kind::kRule:
        return add(Automaton::Kind::kCall, node.a, next);
      case Kind::kSequence:
        for (size_t i = children.size(); i-- > 0;) next = compile(children[i], next);
        return next;
      case Kind::kChoice: {
        uint32_t entry = Automaton::kNowhere;
        for (size_t i = children.size(); i-- > 0;) {
          if (!productive_[children[i]]) continue;
          const uint32_t branch = compile(children[i], next);
          entry = entry == Automaton::kNowhere ? branch : add(Automaton::Kind::kSplit, branch, entry);
        }
        return entry;
      }
      case Kind::kRepeat:
        return repeat(node, children[0], next);
    }
    return dead_;
  }

  uint32_t repeat(const Node& node, uint32_t part, uint32_t next) {
    uint32_t entry = next;
    if (!productive_[part]) return entry;  // none of it: the node would not be productive with a > 0
    if (node.b == Grammar::kNoLimit) {
      entry = add(Automaton::Kind::kSplit, Automaton::kNowhere, next);
      const uint32_t body = compile(part, entry);
      if (!too_large_) out_.states[entry].a = body;
    } else {
      for (uint32_t i = node.a; i < node.b && !too_large_; ++i)
        entry = add(Automaton::Kind::kSplit, compile(part, entry), next);
    }
    for (uint32_t i = 0; i < node.a && !too_large_; ++i) entry = compile(part, entry);
    return entry;
  }

  // Rules that `rule` may call before it has taken a byte.
  std::vector<uint32_t> left_calls(uint32_t rule) {
    std::vector<uint32_t> todo{out_.entries[rule]}, calls;
    while (!todo.empty()) {
      const uint32_t at = todo.back();
      todo.pop_back();
      if (at == Automaton::kNowhere || seen_[at] == rule + 1) continue;
      seen_[at] = rule + 1;
      const Automaton::State& state = out_.states[at];
      if (state.kind == Automaton::Kind::kSplit) {
        todo.push_back(state.a);
        todo.push_back(state.b);
      } else if (state.kind == Automaton::Kind::kCall) {
        calls.push_back(state.a);
        if (nullable_[grammar_.rules()[state.a]]) todo.push_back(state.b);
      }
    }
    return calls;
  }

  // Such a rule would be called without end. By removing, again and again, rules without calls.
  Status refuse_left_recursion() {
    const size_t n = out_.entries.size();
    seen_.assign(out_.states.size(), 0);
    std::vector<std::vector<uint32_t>> callers(n);
    std::vector<uint32_t> open(n, 0), todo;
    for (uint32_t r = 0; r < n; ++r) {
      for (const uint32_t called : left_calls(r)) {
        callers[called].push_back(r);
        ++open[r];
      }
      if (open[r] == 0) todo.push_back(r);
    }
    size_t removed = 0;
    for (; !todo.empty(); ++removed) {
      const uint32_t r = todo.back();
      todo.pop_back();
      for (const uint32_t caller : callers[r]) {
        if (--open[caller] == 0) todo.push_back(caller);
      }
    }
    if (removed == n) return {};
    return input_error(
        "A rule of the grammar begins with itself (left recursion). Write the repetition with * or +, "
        "or put the rule last.");
  }

  void classify_bytes() {
    uint32_t n = 1;
    for (const ByteSet& set : out_.sets) {
      std::map<std::pair<uint8_t, bool>, uint8_t> split;
      for (unsigned b = 0; b < 256; ++b) {
        const auto key = std::pair(out_.class_of[b], set.has(static_cast<uint8_t>(b)));
        out_.class_of[b] = split.try_emplace(key, static_cast<uint8_t>(split.size())).first->second;
      }
      n = static_cast<uint32_t>(split.size());
    }
    out_.member_of.resize(n);
    for (unsigned b = 0; b < 256; ++b) out_.member_of[out_.class_of[b]] = static_cast<uint8_t>(b);
  }

  const Grammar& grammar_;
  const uint32_t most_states_;
  std::vector<bool> productive_, nullable_;  // by expression
  Automaton out_;
  uint32_t dead_ = 0;
  bool too_large_ = false;
  std::vector<uint32_t> seen_;  // by state: the last rule that left_calls() met it for, plus one
};

}  // namespace

Result<Automaton> compile_grammar(const Grammar& grammar, uint32_t most_states) {
  return Compiler(grammar, most_states).run();
}

}  // namespace plow
