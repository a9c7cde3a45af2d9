#include "grammar/regex.h"

#include "grammar/pattern_cursor.h"

#include <optional>
#include <vector>

namespace plow {
namespace {

using Expr = Grammar::Expr;
using Ranges = std::vector<CodeRange>;

const Ranges kDigits = {{'0', '9'}};
const Ranges kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const Ranges kSpace = {{'\t', '\r'}, {' ', ' '}};
const Ranges kNotLineEnd = {{0, '\n' - 1}, {'\n' + 1, kLastCode}};

class RegexParser {
 public:
  RegexParser(Grammar& grammar, std::string_view text, const RegexOptions& options)
      : grammar_(grammar), cursor_(text), options_(options) {}

  Result<Expr> run() {
    PLOW_TRY(const Expr all, alternatives(0));
    if (!cursor_.at_end()) return cursor_.error("this parenthesis closes no group.");
    return all;
  }

 private:
  Expr character(Ranges ranges) {
    ranges = normal_ranges(std::move(ranges));
    return options_.character ? options_.character(grammar_, ranges) : grammar_.characters(ranges);
  }
  Expr anything() {
    return grammar_.repeat(grammar_.shared(character({{0, kLastCode}})), 0, Grammar::kNoLimit);
  }

  Result<Expr> alternatives(int depth) {
    if (depth > kMostGroupDepth) return cursor_.error("the groups are nested too deep.");
    std::vector<Expr> choices;
    do {
      PLOW_TRY(const Expr one, sequence(depth));
      choices.push_back(one);
    } while (cursor_.accept('|'));
    return grammar_.choice(choices);
  }

  // Anchors make sense only at the ends of an alternative that is not in a group.
  Result<Expr> sequence(int depth) {
    std::vector<Expr> parts;
    const bool from_start = depth == 0 && cursor_.accept('^');
    if (depth == 0 && !from_start && !options_.whole) parts.push_back(anything());
    bool to_end = false;
    while (!cursor_.at_end() && cursor_.peek() != '|' && cursor_.peek() != ')') {
      if (depth == 0 && cursor_.peek() == '$' && (cursor_.rest().size() == 1 || cursor_.rest()[1] == '|')) {
        cursor_.accept('$');
        to_end = true;
        break;
      }
      PLOW_TRY(Expr item, atom(depth));
      PLOW_TRY_STATUS(repetition(item));
      parts.push_back(item);
    }
    if (depth == 0 && !to_end && !options_.whole) parts.push_back(anything());
    return grammar_.sequence(parts);
  }

  Status repetition(Expr& item) {
    uint32_t least = 0, most = Grammar::kNoLimit;
    if (cursor_.accept('*')) {
    } else if (cursor_.accept('+')) {
      least = 1;
    } else if (cursor_.accept('?')) {
      most = 1;
    } else if (cursor_.accept('{')) {
      PLOW_TRY(const auto counts, cursor_.counts());
      least = counts.first;
      most = counts.second;
      item = grammar_.shared(item);
    } else {
      return {};
    }
    item = grammar_.repeat(item, least, most);
    cursor_.accept('?');  // as few as possible: the same texts
    const char next = cursor_.peek();
    if (next == '*' || next == '+' || next == '?' || next == '{')
      return cursor_.error("a repetition of a repetition needs a group around it.");
    return {};
  }

  Result<Expr> atom(int depth) {
    if (cursor_.accept('(')) return group(depth);
    if (cursor_.accept('[')) {
      PLOW_TRY(Ranges ranges, character_class());
      return character(std::move(ranges));
    }
    if (cursor_.accept('.')) return character(kNotLineEnd);
    if (cursor_.accept('\\')) {
      PLOW_TRY(Ranges ranges, escape(false));
      return character(std::move(ranges));
    }
    const char c = cursor_.peek();
    if (c == '*' || c == '+' || c == '?' || c == '{')
      return cursor_.error("there is nothing here to repeat.");
    if (c == '^' || c == '$')
      return cursor_.error("^ and $ are understood at the ends of the whole pattern only.");
    const uint32_t code = cursor_.take();
    return character({{code, code}});
  }

  Result<Expr> group(int depth) {
    if (cursor_.accept('?')) {
      const bool named =
          cursor_.accept("P<") || (cursor_.peek() == '<' && !cursor_.rest().starts_with("<=") &&
                                   !cursor_.rest().starts_with("<!") && cursor_.accept('<'));
      if (named) {
        while (!cursor_.at_end() && cursor_.peek() != '>') cursor_.take();
        if (!cursor_.accept('>')) return cursor_.error("the name of a group is not closed.");
      } else if (!cursor_.accept(':')) {
        return cursor_.error(
            "groups may be (...), (?:...) and (?<name>...); looking around is not supported.");
      }
    }
    PLOW_TRY(const Expr inner, alternatives(depth + 1));
    if (!cursor_.accept(')')) return cursor_.error("a group is not closed.");
    return inner;
  }

  // Behind the backslash.
  Result<Ranges> escape(bool in_class) {
    if (cursor_.at_end()) return cursor_.error("nothing follows the backslash.");
    const uint32_t c = cursor_.take();
    const auto one = [](uint32_t code) { return Ranges{{code, code}}; };
    switch (c) {
      case 'd':
        return kDigits;
      case 'D':
        return complement_ranges(kDigits);
      case 'w':
        return kWord;
      case 'W':
        return complement_ranges(kWord);
      case 's':
        return kSpace;
      case 'S':
        return complement_ranges(kSpace);
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 't':
        return one('\t');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case '0':
        return one(0);
      case 'x': {
        PLOW_TRY(const uint32_t code, cursor_.hex(2));
        return one(code);
      }
      case 'u': {
        PLOW_TRY(const uint32_t code, cursor_.hex(4));
        return one(code);
      }
      case 'b':
        if (in_class) return one('\b');
        break;
      default:
        if (c < 0x80 && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z'))
          return one(c);
    }
    return cursor_.error("this escape is not supported.");
  }

  Result<Ranges> character_class() {
    const bool negated = cursor_.accept('^');
    Ranges ranges;
    bool first = true;
    while (first || cursor_.peek() != ']') {
      if (cursor_.at_end()) return cursor_.error("a class is not closed.");
      if (first && cursor_.peek() == ']') break;  // [] matches nothing, [^] anything, as in ECMA-262
      first = false;
      PLOW_TRY(Ranges from, class_item());
      const bool is_range = cursor_.peek() == '-' && cursor_.rest().size() > 1 && cursor_.rest()[1] != ']';
      if (is_range && from.size() == 1 && from[0].first == from[0].last) {
        cursor_.accept('-');
        PLOW_TRY(const Ranges to, class_item());
        if (to.size() != 1 || to[0].first != to[0].last || to[0].first < from[0].first)
          return cursor_.error("this range of characters is not one.");
        from[0].last = to[0].first;
      }
      ranges.insert(ranges.end(), from.begin(), from.end());
    }
    cursor_.accept(']');
    ranges = normal_ranges(std::move(ranges));
    return negated ? complement_ranges(ranges) : ranges;
  }

  Result<Ranges> class_item() {
    if (cursor_.at_end()) return cursor_.error("a class is not closed.");
    if (cursor_.accept('\\')) return escape(true);
    const uint32_t code = cursor_.take();
    return Ranges{{code, code}};
  }

  Grammar& grammar_;
  PatternCursor cursor_;
  const RegexOptions& options_;
};

}  // namespace

Result<Grammar::Expr> add_regex(Grammar& grammar, std::string_view pattern, const RegexOptions& options) {
  if (first_invalid_utf8(pattern)) return input_error("the pattern is not UTF-8.");
  return RegexParser(grammar, pattern, options).run();
}

Result<Grammar> parse_regex(std::string_view pattern) {
  Grammar grammar;
  PLOW_TRY(const Grammar::Expr all, add_regex(grammar, pattern));
  grammar.root = grammar.new_rule();
  grammar.define(grammar.root, all);
  return grammar;
}

}  // namespace plow
