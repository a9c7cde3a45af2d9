// The parser's bound on its own recursion.
#pragma once

#include "text/chat_template/budget.h"
#include "text/chat_template/parser.h"

namespace plow::jinja {

// Brackets or blocks inside one another. Published templates stay below 20; Python itself refuses 200 nested
// brackets.
constexpr uint32_t kMaxNesting = 150;

class Parser::Nesting {
 public:
  explicit Nesting(Parser& parser) : parser_(parser) {
    if (++parser_.nesting_ > kMaxNesting) {
      --parser_.nesting_;
      parser_.fail_here("brackets or blocks are nested too deeply");
    }
  }
  ~Nesting() { --parser_.nesting_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  Parser& parser_;
};

}  // namespace plow::jinja
