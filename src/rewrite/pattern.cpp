#include "rewrite/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace plow {
namespace {

std::optional<Op> operator_named(std::string_view name) {
#define PLOW_OP(number, Name, text) \
  if (name == #text) return Op::k##Name;
#include "abi/ops.def"
  return std::nullopt;
}

// Reads one side of a rule or its conditions. The first error sticks.
class PatternReader {
 public:
  PatternReader(std::string_view text, PatternVariables& variables, bool names_variables)
      : rest_(text), variables_(variables), names_variables_(names_variables) {}

  Result<RewritePattern> read_pattern() {
    read_term();
    if (!rest_.empty()) fail("the pattern goes on");
    if (error_) return *error_;
    return std::move(pattern_);
  }

  Result<std::vector<PatternCall>> read_conditions() {
    std::vector<PatternCall> calls;
    while (!error_ && !rest_.empty()) {
      if (!calls.empty()) expect(", ");
      calls.push_back(read_call(word()));
    }
    if (error_) return *error_;
    return calls;
  }

 private:
  void fail(const std::string& what) {
    if (!error_) error_ = input_error(fmt::format("rule pattern: {} at '{}'", what, rest_));
  }
  bool accept(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail(fmt::format("'{}' must come", text));
  }
  std::string_view word() {
    size_t n = 0;
    while (n < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[n])) || rest_[n] == '_')) ++n;
    if (n == 0) fail("a name must come");
    const std::string_view result = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return result;
  }

  uint32_t variable(std::vector<std::string>& names, std::string_view name, const char* what) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<uint32_t>(found - names.begin());
    if (!names_variables_) fail(fmt::format("the left side names no {} '{}'", what, name));
    names.emplace_back(name);
    return static_cast<uint32_t>(names.size() - 1);
  }

  // Fills terms in pre-order; returns the term's index.
  uint32_t read_term() {
    const auto index = static_cast<uint32_t>(pattern_.terms.size());
    pattern_.terms.emplace_back();
    const std::string_view name = word();
    if (!rest_.starts_with("[") && !rest_.starts_with("(")) {
      pattern_.terms[index].variable = variable(variables_.values, name, "value");
    } else if (name == "plus" && !names_variables_) {
      read_plus(index);
    } else {
      read_operator(index, name);
    }
    return index;
  }

  void read_plus(uint32_t index) {
    PatternTerm& term = pattern_.terms[index];
    term.kind = PatternTerm::Kind::kPlus;
    expect("(");
    term.variable = variable(variables_.values, word(), "value");
    expect(", ");
    AttributePattern added;
    added.kind = AttributePattern::Kind::kVariable;
    added.variable = variable(variables_.attributes, word(), "attribute");
    term.attributes.push_back(added);
    expect(")");
  }

  void read_operator(uint32_t index, std::string_view name) {
    const std::optional<Op> op = operator_named(name);
    if (!op) return fail(fmt::format("there is no operator '{}'", name));
    pattern_.terms[index].kind = PatternTerm::Kind::kOperator;
    pattern_.terms[index].op = *op;
    const OpDef& def = op_def(*op);
    for (size_t i = 0; i < def.attributes.size(); ++i) {
      expect(fmt::format("{}{}=", i == 0 ? "[" : " ", def.attributes[i].name));
      const AttributePattern attribute = read_attribute(def.attributes[i].kind);
      pattern_.terms[index].attributes.push_back(attribute);
    }
    if (!def.attributes.empty()) expect("]");
    expect("(");
    for (uint32_t i = 0; i < def.n_inputs && !error_; ++i) {
      if (i > 0) expect(", ");
      const uint32_t input = read_term();
      pattern_.terms[index].inputs.push_back(input);
    }
    expect(")");
  }

  AttributePattern read_attribute(AttributeKind kind) {
    AttributePattern attribute;
    if (!rest_.empty() && (std::isdigit(static_cast<unsigned char>(rest_.front())) || rest_.front() == '-')) {
      attribute.bits = kind == AttributeKind::kU32 ? number<uint32_t>() : attribute_bits(number<float>());
      return attribute;
    }
    const std::string_view name = word();
    if (rest_.starts_with("(") && !names_variables_) {
      attribute.kind = AttributePattern::Kind::kCall;
      attribute.call = read_call(name);
    } else {
      attribute.kind = AttributePattern::Kind::kVariable;
      attribute.variable = variable(variables_.attributes, name, "attribute");
    }
    return attribute;
  }

  PatternCall read_call(std::string_view name) {
    PatternCall call{std::string(name), {}};
    expect("(");
    while (!error_ && !accept(")")) {
      if (!call.arguments.empty()) expect(", ");
      const std::string_view argument = word();
      const auto& values = variables_.values;
      const auto found = std::find(values.begin(), values.end(), argument);
      if (found != values.end()) {
        call.arguments.push_back({true, static_cast<uint32_t>(found - values.begin())});
      } else {
        call.arguments.push_back({false, variable(variables_.attributes, argument, "variable")});
      }
    }
    return call;
  }

  template <class T>
  T number() {
    T value{};
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{}) fail("a number must come");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }

  std::string_view rest_;
  PatternVariables& variables_;
  bool names_variables_;
  RewritePattern pattern_;
  std::optional<Error> error_;
};

}  // namespace

Result<RewritePattern> parse_left_pattern(std::string_view text, PatternVariables& variables) {
  return PatternReader(text, variables, true).read_pattern();
}

Result<RewritePattern> parse_right_pattern(std::string_view text, const PatternVariables& variables) {
  PatternVariables known = variables;
  return PatternReader(text, known, false).read_pattern();
}

Result<std::vector<PatternCall>> parse_conditions(std::string_view text, const PatternVariables& variables) {
  PatternVariables known = variables;
  return PatternReader(text, known, false).read_conditions();
}

}  // namespace plow
