// Patterns: what a rule looks for and what it makes of it, read from text.
//
//   linear(rms_norm[eps=e offset=o group=n](x, g), w)
//
// An operator is written with all its attributes and inputs; any other word is a variable: of a value where a
// value stands, of an attribute's bits where an attribute stands. The same variable twice is the same value.
// On the right side an attribute may also be a number or a function (`product(a, b)`, rule_functions.h), and
// `plus(g, o)` is the stored weight g with o added to every value.
#pragma once

#include "base/error.h"
#include "graph/op_def.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

// An argument of a condition or a function: a variable of either kind.
struct PatternArgument {
  bool is_value = false;  // else an attribute
  uint32_t variable = 0;
};

// A named predicate or function over variables.
struct PatternCall {
  std::string name;
  std::vector<PatternArgument> arguments;
};

struct AttributePattern {
  enum class Kind : uint8_t { kVariable, kNumber, kCall } kind = Kind::kNumber;
  uint32_t variable = 0;
  uint32_t bits = 0;
  PatternCall call;
};

// Whether an attribute with `bits` is what the left side wants there. A variable takes the bits that it meets
// first. REQUIRES no call.
inline bool bind_attribute(const AttributePattern& wanted, uint32_t bits, std::vector<uint32_t>& values,
                           std::vector<bool>& bound) {
  if (wanted.kind == AttributePattern::Kind::kNumber) return bits == wanted.bits;
  if (!bound[wanted.variable]) {
    bound[wanted.variable] = true;
    values[wanted.variable] = bits;
  }
  return values[wanted.variable] == bits;
}

// A term of a pattern; terms lie in pre-order, so a term's inputs come after it and the root is the first.
struct PatternTerm {
  enum class Kind : uint8_t { kVariable, kOperator, kPlus } kind = Kind::kVariable;
  uint32_t variable = 0;  // kVariable; kPlus: the weight
  Op op = Op::kAdd;       // kOperator
  std::vector<AttributePattern> attributes;  // kOperator: by the operator's definition; kPlus: what is added
  std::vector<uint32_t> inputs;              // terms
};

struct RewritePattern {
  std::vector<PatternTerm> terms;
};

// The variables of a rule, shared by its sides and conditions.
struct PatternVariables {
  std::vector<std::string> values;
  std::vector<std::string> attributes;
};

// Left sides name new variables; right sides and conditions may only use what the left side names. Errors
// (kInput): what is wrong, and the text that could not be read.
Result<RewritePattern> parse_left_pattern(std::string_view text, PatternVariables& variables);
Result<RewritePattern> parse_right_pattern(std::string_view text, const PatternVariables& variables);
// "whole_row(n, x), power_of_two(a)"; empty: none.
Result<std::vector<PatternCall>> parse_conditions(std::string_view text, const PatternVariables& variables);

}  // namespace plow
