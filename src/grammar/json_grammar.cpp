#include "grammar/json_grammar.h"

#include "text/tokenizer/utf8.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

namespace plow {
namespace {

namespace json = boost::json;
using Expr = Grammar::Expr;

constexpr uint32_t kMostIndentation = 20, kMostDigits = 15;

Expr one_of(Grammar& g, std::string_view bytes) {
  ByteSet set;
  for (const char c : bytes) set.add(static_cast<uint8_t>(c));
  return g.bytes(set);
}
Expr digit(Grammar& g) { return one_of(g, "0123456789"); }

// What may stand in a string as it is.
const std::vector<CodeRange>& plain() {
  static const std::vector<CodeRange> ranges = normal_ranges({{0x20, 0x21}, {0x23, 0x5b}, {0x5d, kLastCode}});
  return ranges;
}

// \uXXXX of all but the surrogates.
Expr unicode_escape(Grammar& g) {
  const Expr hex = one_of(g, "0123456789abcdefABCDEF");
  return g.sequence({g.literal("u"),
                     g.choice({g.sequence({one_of(g, "0123456789abcefABCEF"), hex}),
                               g.sequence({one_of(g, "dD"), one_of(g, "01234567")})}),
                     hex, hex});
}

}  // namespace

JsonGrammar::JsonGrammar(Grammar& grammar) : grammar_(grammar) {
  Grammar& g = grammar_;
  blank_ =
      g.shared(g.choice({g.empty(), g.literal(" "),
                         g.sequence({g.literal("\n"), g.repeat(one_of(g, " \t"), 0, kMostIndentation)})}));
  comma_ = g.shared(g.sequence({g.literal(","), blank_}));
  colon_ = g.shared(g.sequence({g.literal(":"), blank_}));
  const Expr escape = g.sequence({g.literal("\\"), g.choice({one_of(g, "\"\\/bfnrt"), unicode_escape(g)})});
  character_ = g.shared(g.choice({g.characters(plain()), escape}));
}

Expr JsonGrammar::string() {
  Grammar& g = grammar_;
  return g.sequence({g.literal("\""), g.repeat(character_, 0, Grammar::kNoLimit), g.literal("\"")});
}

Expr JsonGrammar::integer() {
  Grammar& g = grammar_;
  const Expr whole = g.choice(
      {g.literal("0"), g.sequence({one_of(g, "123456789"), g.repeat(digit(g), 0, kMostDigits - 1)})});
  return g.sequence({g.optional(g.literal("-")), whole});
}

Expr JsonGrammar::number() {
  Grammar& g = grammar_;
  const Expr fraction = g.sequence({g.literal("."), g.repeat(digit(g), 1, kMostDigits)});
  const Expr exponent = g.sequence({one_of(g, "eE"), g.optional(one_of(g, "+-")), g.repeat(digit(g), 1, 2)});
  return g.sequence({integer(), g.optional(fraction), g.optional(exponent)});
}

Expr JsonGrammar::value() {
  Grammar& g = grammar_;
  if (!value_) {
    value_ = g.new_rule();
    g.define(*value_, g.choice({object(), array(), string(), number(), g.literal("true"), g.literal("false"),
                                g.literal("null")}));
  }
  return g.use(*value_);
}

Expr JsonGrammar::object() {
  Grammar& g = grammar_;
  if (!object_) {
    object_ = g.new_rule();
    const Expr member = g.shared(g.sequence({string(), colon_, value()}));
    const Expr more = g.repeat(g.sequence({comma_, member}), 0, Grammar::kNoLimit);
    g.define(*object_, g.sequence({g.literal("{"), blank_, g.optional(g.sequence({member, more, blank_})),
                                   g.literal("}")}));
  }
  return g.use(*object_);
}

Expr JsonGrammar::array() {
  Grammar& g = grammar_;
  if (!array_) {
    array_ = g.new_rule();
    const Expr more = g.repeat(g.sequence({comma_, value()}), 0, Grammar::kNoLimit);
    g.define(*array_, g.sequence({g.literal("["), blank_, g.optional(g.sequence({value(), more, blank_})),
                                  g.literal("]")}));
  }
  return g.use(*array_);
}

Expr JsonGrammar::spelled(std::span<const CodeRange> ranges) {
  Grammar& g = grammar_;
  std::vector<CodeRange> as_is;
  std::vector<Expr> choices;
  for (const CodeRange& range : ranges) {
    for (const CodeRange& part : plain()) {
      const uint32_t first = std::max(range.first, part.first), last = std::min(range.last, part.last);
      if (first <= last) as_is.push_back({first, last});
    }
    for (uint32_t code = range.first; code <= std::min<uint32_t>(range.last, '\\'); ++code) {
      constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
      const size_t at = kEscaped.find(static_cast<char>(code));
      if (at != std::string_view::npos) {
        choices.push_back(g.literal(fmt::format("\\{}", kLetters[at])));
      } else if (code < 0x20) {
        choices.push_back(g.literal(fmt::format("\\u{:04x}", code)));
      }
    }
  }
  if (!as_is.empty()) choices.push_back(g.characters(as_is));
  return g.choice(choices);
}

// Goes through the names, which are sorted and all begin alike up to `depth`.
Expr JsonGrammar::other_than(std::span<const std::string> names, size_t depth) {
  Grammar& g = grammar_;
  const Expr rest =
      g.sequence({g.repeat(g.shared(g.characters(plain())), 0, Grammar::kNoLimit), g.literal("\"")});
  std::vector<Expr> choices;
  std::vector<CodeRange> taken;
  size_t i = 0;
  if (names[0].size() == depth) {
    ++i;  // the name itself: it may not end here
  } else {
    choices.push_back(g.literal("\""));
  }
  while (i < names.size()) {
    const CodePoint code = code_point_at(names[i], depth);
    size_t end = i;
    while (end < names.size() && names[end].compare(depth, code.bytes, names[i], depth, code.bytes) == 0)
      ++end;
    const CodeRange here{code.value, code.value};
    taken.push_back(here);
    choices.push_back(g.sequence({g.literal(names[i].substr(depth, code.bytes)),
                                  other_than(names.subspan(i, end - i), depth + code.bytes)}));
    i = end;
  }
  std::vector<CodeRange> forbidden = complement_ranges(plain());
  forbidden.insert(forbidden.end(), taken.begin(), taken.end());
  choices.push_back(g.sequence({g.characters(complement_ranges(normal_ranges(std::move(forbidden)))), rest}));
  return g.choice(choices);
}

Expr JsonGrammar::string_other_than(std::vector<std::string> names) {
  // What needs an escape cannot be written without.
  std::erase_if(names, [](const std::string& name) {
    return std::ranges::any_of(
        name, [](char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20; });
  });
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  Grammar& g = grammar_;
  if (names.empty())
    return g.sequence(
        {g.literal("\""), g.repeat(g.characters(plain()), 0, Grammar::kNoLimit), g.literal("\"")});
  return g.sequence({g.literal("\""), other_than(names, 0)});
}

Expr JsonGrammar::literal(const json::value& value) { return grammar_.literal(json_text(value)); }

// From the end: what may follow the i-th item.
Expr JsonGrammar::array_of(const std::vector<Expr>& first, Expr item, uint32_t least, uint32_t most) {
  const auto n = static_cast<uint32_t>(first.size());
  const auto minus = [](uint32_t a, uint32_t b) { return a > b ? a - b : 0; };
  const Expr more = grammar_.sequence({comma(), item});
  Expr rest = grammar_.repeat(more, minus(least, std::max(n, 1u)),
                              most == Grammar::kNoLimit ? most : minus(most, std::max(n, 1u)));
  if (n == 0) {
    rest = most == 0 ? grammar_.empty() : grammar_.sequence({item, rest, blank()});
    if (least == 0 && most > 0) rest = grammar_.optional(rest);
  } else {
    if (most <= n) rest = grammar_.empty();
    rest = grammar_.sequence({rest, blank()});
    for (uint32_t i = n; i-- > 0;) {
      const Expr separator = i > 0 ? comma() : grammar_.empty();
      if (i >= most) {
        rest = i == 0 ? grammar_.empty() : blank();
        continue;
      }
      rest = grammar_.sequence({separator, first[i], rest});
      if (i >= least) rest = grammar_.choice({i > 0 ? blank() : grammar_.empty(), rest});
    }
  }
  return grammar_.sequence({grammar_.literal("["), blank(), rest, grammar_.literal("]")});
}

Expr JsonGrammar::map_of(std::optional<Expr> pair, uint32_t least, uint32_t most) {
  Expr inner = grammar_.empty();
  if (pair && most > 0) {
    const Expr more = grammar_.sequence({comma(), *pair});
    const uint32_t more_most = most == Grammar::kNoLimit ? most : most - 1;
    inner = grammar_.sequence({*pair, grammar_.repeat(more, least > 0 ? least - 1 : 0, more_most), blank()});
    if (least == 0) inner = grammar_.optional(inner);
  }
  return grammar_.sequence({grammar_.literal("{"), blank(), inner, grammar_.literal("}")});
}

// From the end, two rules a member: what may follow when nothing (something) was written before it.
Expr JsonGrammar::members_in_order(const std::vector<Member>& members, std::optional<Expr> other) {
  Grammar& g = grammar_;
  Expr first = blank(), later = blank();
  if (other) {
    const Expr more = g.repeat(g.sequence({comma(), *other}), 0, Grammar::kNoLimit);
    later = g.sequence({more, blank()});
    first = g.optional(g.sequence({*other, later}));
  } else {
    first = g.empty();
  }
  for (size_t i = members.size(); i-- > 0;) {
    const Expr with_first = g.sequence({members[i].pair, later});
    const Expr with_later = g.sequence({comma(), members[i].pair, later});
    first = g.shared(members[i].required ? with_first : g.choice({with_first, first}));
    later = g.shared(members[i].required ? with_later : g.choice({with_later, later}));
  }
  return g.sequence({g.literal("{"), blank(), first, g.literal("}")});
}

std::string json_text(const json::value& value) {
  if (value.is_double()) {
    const double number = value.get_double();
    return std::isfinite(number) ? fmt::format("{}", number) : "null";
  }
  if (value.is_array()) {
    std::string text = "[";
    for (const json::value& item : value.get_array()) {
      if (text.size() > 1) text += ',';
      text += json_text(item);
    }
    return text + "]";
  }
  if (value.is_object()) {
    std::string text = "{";
    for (const auto& [key, item] : value.get_object()) {
      if (text.size() > 1) text += ',';
      text += json::serialize(json::string(key)) + ":" + json_text(item);
    }
    return text + "}";
  }
  return json::serialize(value);
}

}  // namespace plow
