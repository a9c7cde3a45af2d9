#include "grammar/gbnf.h"

#include "grammar/pattern_cursor.h"

#include <map>
#include <string>
#include <vector>

namespace plow {
namespace {

using Expr = Grammar::Expr;

bool names(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class GbnfParser {
 public:
  explicit GbnfParser(std::string_view text) : cursor_(text) {}

  Result<Grammar> run() {
    skip_blanks(true);
    while (!cursor_.at_end()) {
      PLOW_TRY_STATUS(parse_rule());
      skip_blanks(true);
    }
    for (const auto& [name, rule] : rules_) {
      if (grammar_.rules()[rule] == Grammar::kUndefined)
        return input_error(fmt::format("the rule {} is used and not defined.", name));
    }
    const auto root = rules_.find("root");
    if (root == rules_.end()) return input_error("there is no rule named root.");
    grammar_.root = root->second;
    return std::move(grammar_);
  }

 private:
  // Blanks and comments; line ends too inside of groups.
  void skip_blanks(bool lines) {
    while (!cursor_.at_end()) {
      const char c = cursor_.peek();
      if (c == '#') {
        while (!cursor_.at_end() && cursor_.peek() != '\n') cursor_.take();
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        cursor_.take();
      } else {
        return;
      }
    }
  }

  std::string name() {
    std::string text;
    while (names(cursor_.peek())) text += static_cast<char>(cursor_.take());
    return text;
  }

  Grammar::Rule rule_of(const std::string& text) {
    const auto [found, fresh] = rules_.try_emplace(text, 0);
    if (fresh) found->second = grammar_.new_rule();
    return found->second;
  }

  Status parse_rule() {
    const std::string text = name();
    if (text.empty()) return cursor_.error("the name of a rule must stand here.");
    skip_blanks(false);
    if (!cursor_.accept("::=")) return cursor_.error("::= must follow the name of a rule.");
    skip_blanks(true);
    PLOW_TRY(const Expr body, alternatives(0));
    const Grammar::Rule rule = rule_of(text);
    if (grammar_.rules()[rule] != Grammar::kUndefined)
      return cursor_.error(fmt::format("the rule {} is defined a second time.", text));
    grammar_.define(rule, body);
    skip_blanks(false);
    if (!cursor_.at_end() && cursor_.peek() != '\n' && cursor_.peek() != '\r')
      return cursor_.error("a rule ends with its line.");
    return {};
  }

  Result<Expr> alternatives(int depth) {
    if (depth > kMostGroupDepth) return cursor_.error("the groups are nested too deep.");
    std::vector<Expr> choices;
    do {
      skip_blanks(true);
      PLOW_TRY(const Expr one, sequence(depth));
      choices.push_back(one);
    } while (cursor_.accept('|'));
    return grammar_.choice(choices);
  }

  Result<Expr> sequence(int depth) {
    std::vector<Expr> parts;
    while (true) {
      const char c = cursor_.peek();
      if (c != '"' && c != '[' && c != '(' && c != '.' && !names(c)) break;
      PLOW_TRY(Expr item, atom(depth));
      while (true) {
        PLOW_TRY(const bool repeated, repetition(item));
        if (!repeated) break;
      }
      parts.push_back(item);
      skip_blanks(depth > 0);
    }
    return grammar_.sequence(parts);
  }

  Result<bool> repetition(Expr& item) {
    if (cursor_.accept('*')) {
      item = grammar_.repeat(item, 0, Grammar::kNoLimit);
    } else if (cursor_.accept('+')) {
      item = grammar_.repeat(item, 1, Grammar::kNoLimit);
    } else if (cursor_.accept('?')) {
      item = grammar_.optional(item);
    } else if (cursor_.accept('{')) {
      PLOW_TRY(const auto counts, cursor_.counts());
      item = grammar_.repeat(grammar_.shared(item), counts.first, counts.second);
    } else {
      return false;
    }
    return true;
  }

  Result<Expr> atom(int depth) {
    if (cursor_.accept('"')) return literal();
    if (cursor_.accept('[')) return character_class();
    if (cursor_.accept('.')) {
      constexpr CodeRange kAll{0, kLastCode};
      return grammar_.characters(normal_ranges({kAll}));
    }
    if (cursor_.accept('(')) {
      PLOW_TRY(const Expr group, alternatives(depth + 1));
      skip_blanks(true);
      if (!cursor_.accept(')')) return cursor_.error("a group is not closed.");
      return group;
    }
    return grammar_.use(rule_of(name()));
  }

  // One character, which may be escaped.
  Result<uint32_t> character() {
    if (cursor_.at_end()) return cursor_.error("the text ends within a literal or a class.");
    const uint32_t c = cursor_.take();
    if (c != '\\') return c;
    if (cursor_.at_end()) return cursor_.error("nothing follows the backslash.");
    switch (const uint32_t escaped = cursor_.take()) {
      case 'x':
        return cursor_.hex(2);
      case 'u':
        return cursor_.hex(4);
      case 'U':
        return cursor_.hex(8);
      case 'n':
        return uint32_t{'\n'};
      case 'r':
        return uint32_t{'\r'};
      case 't':
        return uint32_t{'\t'};
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
        return escaped;
      default:
        return cursor_.error("this escape is not known.");
    }
  }

  Result<Expr> literal() {
    std::vector<Expr> parts;
    while (!cursor_.accept('"')) {
      PLOW_TRY(const uint32_t code, character());
      const auto range = normal_ranges({{code, code}});
      if (range.empty() || code > kLastCode) return cursor_.error("this is no character of Unicode.");
      parts.push_back(grammar_.characters(range));
    }
    return grammar_.sequence(parts);
  }

  Result<Expr> character_class() {
    const bool negated = cursor_.accept('^');
    std::vector<CodeRange> ranges;
    while (!cursor_.accept(']')) {
      PLOW_TRY(const uint32_t first, character());
      uint32_t last = first;
      if (cursor_.peek() == '-' && !cursor_.rest().starts_with("-]")) {
        cursor_.accept('-');
        PLOW_TRY(last, character());
      }
      if (last < first) return cursor_.error("the ends of the range are in the wrong order.");
      ranges.push_back({first, last});
    }
    ranges = normal_ranges(std::move(ranges));
    return grammar_.characters(negated ? complement_ranges(ranges) : ranges);
  }

  PatternCursor cursor_;
  Grammar grammar_;
  std::map<std::string, Grammar::Rule> rules_;
};

}  // namespace

Result<Grammar> parse_gbnf(std::string_view text) {
  if (first_invalid_utf8(text)) return input_error("the grammar is not UTF-8.");
  return GbnfParser(text).run();
}

}  // namespace plow
