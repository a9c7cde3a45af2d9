// Cuts the source of a template into tokens, as jinja2's lexer does with trim_blocks and lstrip_blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plow::jinja {

enum class TokenKind : uint8_t {
  kData,           // text between tags, whitespace control applied; never empty
  kVariableBegin,  // {{
  kVariableEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kString,  // text: escapes decoded
  kInteger,
  kFloat,
  kOperator,  // text: the operator
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  uint32_t line = 1;
  std::string text;
  int64_t integer = 0;
  double real = 0;
};

// The last token is kEnd. Throws Failure. REQUIRES valid UTF-8.
std::vector<Token> tokenize(std::string_view source);

}  // namespace plow::jinja
