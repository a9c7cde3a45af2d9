// One sequence whose cache stays between prompts: what a prompt has in common with what is in the cache is
// not computed again.
#pragma once

#include "runtime/generate.h"

#include <cstdint>
#include <span>
#include <vector>

namespace plow {

class Session {
 public:
  // Errors: as Engine::open_slot. REQUIRES that `engine` outlives the session.
  static Result<Session> open(Engine& engine);

  Session(Session&& other) noexcept;
  Session& operator=(Session&&) = delete;
  Session(const Session&) = delete;
  ~Session();

  struct Answer {
    Generated generated;
    uint32_t prompt_tokens = 0;
    uint32_t reused_tokens = 0;  // of the prompt, that were in the cache
  };

  // Answers the whole `prompt` (from the beginning of the sequence). Errors: as generate(); the session can
  // be used on.
  Result<Answer> answer(std::span<const uint32_t> prompt, const GenerateOptions& options,
                        const TokenCallback& on_token);

 private:
  Session(Engine& engine, uint32_t slot) : engine_(&engine), slot_(slot) {}
  Result<uint32_t> keep_common_prefix(std::span<const uint32_t> prompt);

  Engine* engine_;
  uint32_t slot_;
  std::vector<uint32_t> cached_;  // tokens of the slot's sequence, by position
};

}  // namespace plow
