// JSON's own parts as expressions (RFC 8259), and how plow lets a model write it: where blanks may stand
// there is one, or a line end with at most 20 blanks of indentation, so that no answer can consist of blanks;
// numbers have at most 15 digits before and after the point, which a double holds or rounds.
#pragma once

#include "grammar/grammar.h"

#include <boost/json/value.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

class JsonGrammar {
 public:
  explicit JsonGrammar(Grammar& grammar);

  Grammar::Expr value();   // anything
  Grammar::Expr object();  // with any members
  Grammar::Expr array();
  Grammar::Expr string();
  Grammar::Expr number();
  Grammar::Expr integer();
  Grammar::Expr blank() { return blank_; }
  Grammar::Expr comma() { return comma_; }  // with blanks behind it
  Grammar::Expr colon() { return colon_; }
  Grammar::Expr string_character() { return character_; }  // one, which may be an escape
  // One character out of `ranges`, in the spelling that it has in a string.
  Grammar::Expr spelled(std::span<const CodeRange> ranges);
  // A string, with quotes, that is none of `names` and has no escapes.
  Grammar::Expr string_other_than(std::vector<std::string> names);
  Grammar::Expr literal(const boost::json::value& value);

  // An array that begins with the items of `first`, and then has `item` any number of times, from `least` to
  // `most` items in all (Grammar::kNoLimit: no bound).
  Grammar::Expr array_of(const std::vector<Grammar::Expr>& first, Grammar::Expr item, uint32_t least,
                         uint32_t most);
  // An object of members `pair`, from `least` to `most`; without a pair the empty object.
  Grammar::Expr map_of(std::optional<Grammar::Expr> pair, uint32_t least, uint32_t most);
  struct Member {
    Grammar::Expr pair;  // key, colon and value
    bool required;
  };
  // An object of these members in their order, then any number of `other` members, where there are such.
  Grammar::Expr members_in_order(const std::vector<Member>& members, std::optional<Grammar::Expr> other);

 private:
  Grammar::Expr other_than(std::span<const std::string> names, size_t depth);

  Grammar& grammar_;
  Grammar::Expr blank_, comma_, colon_, character_;
  std::optional<Grammar::Rule> value_, object_, array_;
};

// A value as JSON text without blanks; doubles by their shortest spelling.
std::string json_text(const boost::json::value& value);

}  // namespace plow
