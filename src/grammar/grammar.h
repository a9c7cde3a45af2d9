// A grammar as data: rules whose right-hand sides are expressions over bytes. Parsers build it, Automaton
// compiles it.
//
// For the server's structured answers. Expressions are numbers into one flat array, so that a rule may be
// used before it is defined and a common part may be used twice.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

// A set of bytes.
struct ByteSet {
  std::array<uint64_t, 4> bits{};

  void add(uint8_t byte) { bits[byte / 64] |= uint64_t{1} << (byte % 64); }
  void add_range(uint8_t first, uint8_t last) {
    for (unsigned b = first; b <= last; ++b) add(static_cast<uint8_t>(b));
  }
  bool has(uint8_t byte) const { return (bits[byte / 64] >> (byte % 64) & 1) != 0; }
  bool empty() const { return bits == std::array<uint64_t, 4>{}; }
  bool operator==(const ByteSet&) const = default;
};

// Code points, both ends in it.
struct CodeRange {
  uint32_t first, last;
};
constexpr uint32_t kLastCode = 0x10ffff;

// Sorted, without overlaps, without the surrogates (which UTF-8 cannot spell) and what lies beyond Unicode.
std::vector<CodeRange> normal_ranges(std::vector<CodeRange> ranges);
// What `ranges` does not have. REQUIRES normal ranges.
std::vector<CodeRange> complement_ranges(std::span<const CodeRange> ranges);

class Grammar {
 public:
  enum class Kind : uint8_t {
    kBytes,     // one byte of sets()[a]
    kSequence,  // children one after the other; none: the empty text
    kChoice,    // one of the children; none: nothing matches
    kRepeat,    // child(0), from a to b times; b == kNoLimit: any number
    kRule,      // rules()[a]
  };
  using Expr = uint32_t;
  using Rule = uint32_t;
  static constexpr uint32_t kNoLimit = 0xffffffffu;
  struct Node {
    Kind kind;
    uint32_t a = 0, b = 0;
    uint32_t first_child = 0, n_children = 0;  // into children()
  };

  Expr bytes(const ByteSet& set);
  Expr literal(std::string_view text);
  Expr characters(std::span<const CodeRange> ranges);  // one character in UTF-8. REQUIRES normal ranges
  Expr sequence(std::span<const Expr> parts);
  Expr sequence(std::initializer_list<Expr> parts) {
    return sequence(std::span(parts.begin(), parts.size()));
  }
  Expr choice(std::span<const Expr> parts);
  Expr choice(std::initializer_list<Expr> parts) { return choice(std::span(parts.begin(), parts.size())); }
  Expr repeat(Expr part, uint32_t least, uint32_t most);
  Expr optional(Expr part) { return repeat(part, 0, 1); }
  Expr empty() { return sequence(std::span<const Expr>()); }
  Expr use(Rule rule);

  Rule new_rule();
  void define(Rule rule, Expr body);
  // A rule for `body`, used: the same part many times costs one state each time.
  Expr shared(Expr body);

  Rule root = 0;

  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Expr> children_of(const Node& node) const {
    return std::span(children_).subspan(node.first_child, node.n_children);
  }
  std::span<const ByteSet> sets() const { return sets_; }
  std::span<const Expr> rules() const { return rules_; }  // kUndefined where define() was not called
  static constexpr Expr kUndefined = 0xffffffffu;

 private:
  Expr add(Kind kind, uint32_t a, uint32_t b, std::span<const Expr> children);

  std::vector<Node> nodes_;
  std::vector<Expr> children_;
  std::vector<ByteSet> sets_;
  std::vector<Expr> rules_;
};

}  // namespace plow
