// The structure that a request asks of its answers: from its fields to the tokens that may come next.
#pragma once

#include "grammar/automaton.h"
#include "grammar/matcher.h"
#include "grammar/token_trie.h"
#include "runtime/batcher.h"
#include "serve/api_error.h"
#include "serve/fields.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace plow {

// Reads response_format, structured_outputs and their other names; null when none asks for anything. Errors
// name the field: a schema, pattern or grammar that is none or that is not supported, two structures at once.
std::optional<ApiError> read_structure(const FieldReader& fields, std::shared_ptr<const Automaton>& out);

// One answer's way through the automaton. Masks are kept by state: inside of a string, say, every step has
// the same.
class StructureRule : public AnswerRule {
 public:
  // REQUIRES that `trie` outlives the rule.
  StructureRule(std::shared_ptr<const Automaton> automaton, const TokenTrie& trie, uint32_t vocab,
                std::vector<uint32_t> stop_ids);
  Result<const uint32_t*> allowed() override;
  bool accept(uint32_t token) override;

 private:
  const TokenTrie& trie_;
  const uint32_t vocab_;
  const std::vector<uint32_t> stop_ids_;  // may come where the structure may end
  Matcher matcher_;
  Matcher::State state_;
  std::unordered_map<Matcher::State, std::vector<uint32_t>> masks_;
};

}  // namespace plow
