#include "grammar/grammar.h"

#include <algorithm>

namespace plow {
namespace {

constexpr CodeRange kSurrogates{0xd800, 0xdfff};

struct Utf8 {
  std::array<uint8_t, 4> byte{};
  uint32_t n = 0;
};

Utf8 utf8_of(uint32_t code) {
  const auto low = [&](uint32_t shift) { return static_cast<uint8_t>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) return {{static_cast<uint8_t>(code)}, 1};
  if (code < 0x800) return {{static_cast<uint8_t>(0xc0 | code >> 6), low(0)}, 2};
  if (code < 0x10000) return {{static_cast<uint8_t>(0xe0 | code >> 12), low(6), low(0)}, 3};
  return {{static_cast<uint8_t>(0xf0 | code >> 18), low(12), low(6), low(0)}, 4};
}

// Cuts a range into pieces whose encodings are, byte by byte, all of a first to a last: as RE2 and Rust's
// utf8-ranges do. REQUIRES first <= last.
void cut(CodeRange range, std::vector<CodeRange>& out) {
  for (const uint32_t end : {0x7fu, 0x7ffu, 0xffffu}) {
    if (range.first <= end && end < range.last) {
      cut({range.first, end}, out);
      return cut({end + 1, range.last}, out);
    }
  }
  for (uint32_t bits = 6; range.last > 0x7f && bits <= 18; bits += 6) {
    const uint32_t mask = (1u << bits) - 1;
    if ((range.first & ~mask) == (range.last & ~mask)) continue;
    if ((range.first & mask) != 0) {
      cut({range.first, range.first | mask}, out);
      return cut({(range.first | mask) + 1, range.last}, out);
    }
    if ((range.last & mask) != mask) {
      cut({range.first, (range.last & ~mask) - 1}, out);
      return cut({range.last & ~mask, range.last}, out);
    }
  }
  out.push_back(range);
}

}  // namespace

std::vector<CodeRange> normal_ranges(std::vector<CodeRange> ranges) {
  std::vector<CodeRange> cleared;
  for (CodeRange range : ranges) {
    range.last = std::min(range.last, kLastCode);
    if (range.first > range.last) continue;
    if (range.first < kSurrogates.first)
      cleared.push_back({range.first, std::min(range.last, kSurrogates.first - 1)});
    if (range.last > kSurrogates.last)
      cleared.push_back({std::max(range.first, kSurrogates.last + 1), range.last});
  }
  std::ranges::sort(cleared, {}, &CodeRange::first);
  std::vector<CodeRange> merged;
  for (const CodeRange& range : cleared) {
    if (!merged.empty() && range.first <= merged.back().last + 1) {
      merged.back().last = std::max(merged.back().last, range.last);
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

std::vector<CodeRange> complement_ranges(std::span<const CodeRange> ranges) {
  std::vector<CodeRange> rest;
  uint32_t next = 0;
  for (const CodeRange& range : ranges) {
    if (range.first > next) rest.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCode) rest.push_back({next, kLastCode});
  return normal_ranges(std::move(rest));
}

Grammar::Expr Grammar::add(Kind kind, uint32_t a, uint32_t b, std::span<const Expr> children) {
  nodes_.push_back(
      {kind, a, b, static_cast<uint32_t>(children_.size()), static_cast<uint32_t>(children.size())});
  children_.insert(children_.end(), children.begin(), children.end());
  return static_cast<Expr>(nodes_.size() - 1);
}

Grammar::Expr Grammar::bytes(const ByteSet& set) {
  const auto found = std::ranges::find(sets_, set);
  const auto index = static_cast<uint32_t>(found - sets_.begin());
  if (found == sets_.end()) sets_.push_back(set);
  return add(Kind::kBytes, index, 0, {});
}

Grammar::Expr Grammar::literal(std::string_view text) {
  std::vector<Expr> parts;
  for (const char c : text) {
    ByteSet set;
    set.add(static_cast<uint8_t>(c));
    parts.push_back(bytes(set));
  }
  return sequence(parts);
}

Grammar::Expr Grammar::characters(std::span<const CodeRange> ranges) {
  std::vector<CodeRange> pieces;
  for (const CodeRange& range : ranges) cut(range, pieces);
  std::vector<Expr> choices;
  ByteSet ascii;
  for (const CodeRange& piece : pieces) {
    const Utf8 first = utf8_of(piece.first), last = utf8_of(piece.last);
    if (first.n == 1) {
      ascii.add_range(first.byte[0], last.byte[0]);
      continue;
    }
    std::vector<Expr> parts;
    for (uint32_t i = 0; i < first.n; ++i) {
      ByteSet set;
      set.add_range(first.byte[i], last.byte[i]);
      parts.push_back(bytes(set));
    }
    choices.push_back(sequence(parts));
  }
  if (!ascii.empty()) choices.push_back(bytes(ascii));
  return choices.size() == 1 ? choices[0] : choice(choices);
}

Grammar::Expr Grammar::sequence(std::span<const Expr> parts) {
  return parts.size() == 1 ? parts[0] : add(Kind::kSequence, 0, 0, parts);
}

Grammar::Expr Grammar::choice(std::span<const Expr> parts) {
  return parts.size() == 1 ? parts[0] : add(Kind::kChoice, 0, 0, parts);
}

Grammar::Expr Grammar::repeat(Expr part, uint32_t least, uint32_t most) {
  return add(Kind::kRepeat, least, most, std::span(&part, 1));
}

Grammar::Expr Grammar::use(Rule rule) { return add(Kind::kRule, rule, 0, {}); }

Grammar::Rule Grammar::new_rule() {
  rules_.push_back(kUndefined);
  return static_cast<Rule>(rules_.size() - 1);
}

void Grammar::define(Rule rule, Expr body) { rules_[rule] = body; }

Grammar::Expr Grammar::shared(Expr body) {
  const Rule rule = new_rule();
  define(rule, body);
  return use(rule);
}

}  // namespace plow
