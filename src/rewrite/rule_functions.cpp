// The conditions that a rule may state and the functions that its right side may use.
#include "rewrite/rule.h"

#include <bit>
#include <cmath>

namespace plow {
namespace {

using Arguments = std::span<const RuleArgument>;

float as_float(const RuleArgument& argument) { return std::bit_cast<float>(argument.bits); }

// Products of f32 with a power of two are exact as long as nothing over- or underflows; 2^-64 .. 2^64 leaves
// room on both sides for the values of a network (f32 reaches from 2^-126 to 2^127).
bool power_of_two(Arguments in) {
  int exponent = 0;
  const float mantissa = std::frexp(as_float(in[0]), &exponent);
  return std::fabs(mantissa) == 0.5f && exponent > -64 && exponent <= 64;
}

bool positive(Arguments in) { return as_float(in[0]) > 0; }
bool zero(Arguments in) { return as_float(in[0]) == 0; }
bool nonzero(Arguments in) { return as_float(in[0]) != 0; }
bool one(Arguments in) { return as_float(in[0]) == 1; }
bool whole_row(Arguments in) { return in[0].bits == in[1].type.shape.cols; }

// A double holds the product of two floats exactly, so comparing with the float of it shows a rounding.
std::optional<uint32_t> exact(double value) {
  const auto rounded = static_cast<float>(value);
  if (!std::isfinite(rounded) || static_cast<double>(rounded) != value) return std::nullopt;
  if (rounded != 0 && !std::isnormal(rounded)) return std::nullopt;
  return std::bit_cast<uint32_t>(rounded);
}

std::optional<uint32_t> product(Arguments in) {
  return exact(static_cast<double>(as_float(in[0])) * static_cast<double>(as_float(in[1])));
}

// eps / f^2: what rms_norm must add when its input is not multiplied by f.
std::optional<uint32_t> over_square(Arguments in) {
  const auto factor = static_cast<double>(as_float(in[1]));
  if (factor == 0) return std::nullopt;
  return exact(static_cast<double>(as_float(in[0])) / (factor * factor));
}

std::optional<uint32_t> cols(Arguments in) { return in[0].type.shape.cols; }

// A cut of a product along k lies at a multiple of this many columns: a cache line of bf16 activations or two
// of f32, and a whole number of the column pairs of Layout::kRows16Pairs.
constexpr uint32_t kCutColumns = 32;
// A piece more reads and writes the f32 sums of a row once more, 8 bytes an output, beside 2 bytes of bf16 weights an
// output and column: less than 1% from here on.
constexpr uint32_t kShortestPiece = 512;

std::optional<uint32_t> cut_at(uint32_t begin, uint32_t end) {
  if (end < begin + 2 * kShortestPiece) return std::nullopt;
  return (begin + end) / 2 / kCutColumns * kCutColumns;
}

std::optional<uint32_t> half(Arguments in) { return cut_at(0, in[0].type.shape.cols); }
std::optional<uint32_t> middle(Arguments in) { return cut_at(in[0].bits, in[1].bits); }

std::optional<uint32_t> half_of_heads(Arguments in) {
  const uint32_t head_dim = in[0].bits;
  const uint32_t heads = in[1].type.shape.cols / head_dim;
  if (heads < 2) return std::nullopt;
  return heads / 2 * head_dim;
}

// Query heads that share a head of the cache: of a query and its cache.
std::optional<uint32_t> heads_of_kv_head(Arguments in) {
  return in[0].type.shape.cols / in[1].type.shape.cols;
}

bool stored_f32(Arguments in) {
  return in[0].given != nullptr && in[0].given->op == Op::kWeight && in[0].type.dtype == DType::kF32 &&
         in[0].given->attributes[0] == 0;
}

constexpr RulePredicate kPredicates[] = {
    {"nonzero", "a", nonzero, "the attribute is not 0"},
    {"one", "a", one, "the attribute is 1"},
    {"positive", "a", positive, "the attribute is above 0"},
    {"power_of_two", "a", power_of_two, "the attribute is a power of two or the negative of one, 2^-64 to 2^63"},
    {"stored_f32", "v", stored_f32, "the value is a weight of the checkpoint, stored as f32, as it is"},
    {"whole_row", "av", whole_row, "the attribute is the number of columns of the value"},
    {"zero", "a", zero, "the attribute is 0"},
};

constexpr RuleFunction kFunctions[] = {
    {"cols", "v", cols, "the number of columns"},
    {"half", "v", half, "the middle of the columns, a multiple of 32, if both halves have at least 512"},
    {"half_of_heads", "av", half_of_heads, "the columns of the first half of the heads, if there are two"},
    {"heads_of_kv_head", "vv", heads_of_kv_head,
     "the query heads (columns of the first) that share a head of the cache (the second)"},
    {"middle", "aa", middle, "the middle of a range of columns, like half"},
    {"over_square", "aa", over_square, "a / b^2, if f32 holds it exactly"},
    {"product", "aa", product, "a * b, if f32 holds it exactly"},
};

}  // namespace

std::span<const RulePredicate> rule_predicates() { return kPredicates; }
std::span<const RuleFunction> rule_functions() { return kFunctions; }

const RulePredicate* find_predicate(std::string_view name) {
  for (const RulePredicate& predicate : kPredicates) {
    if (name == predicate.name) return &predicate;
  }
  return nullptr;
}

const RuleFunction* find_function(std::string_view name) {
  for (const RuleFunction& function : kFunctions) {
    if (name == function.name) return &function;
  }
  return nullptr;
}

}  // namespace plow
