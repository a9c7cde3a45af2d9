#include "plowrt/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace plow {

Result<Session> Session::open(Engine& engine) {
  PLOW_TRY(const uint32_t slot, engine.open_slot());
  return Session(engine, slot);
}

Session::Session(Session&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)), slot_(other.slot_), cached_(std::move(other.cached_)) {}

Session::~Session() {
  if (engine_ != nullptr) engine_->close_slot(slot_);
}

// Rewinds the sequence to what it shares with the prompt; at least the prompt's last token is left to be
// computed, for its logits.
Result<uint32_t> Session::keep_common_prefix(std::span<const uint32_t> prompt) {
  const auto end = std::mismatch(cached_.begin(), cached_.end(), prompt.begin(), prompt.end()).first;
  auto common = static_cast<size_t>(end - cached_.begin());
  common = std::min(common, prompt.size() - 1);
  if (!engine_->rewind(slot_, static_cast<uint32_t>(common)).ok()) {
    // A window has let go what the rows after `common` would read: begin anew.
    engine_->close_slot(slot_);
    PLOW_TRY(slot_, engine_->open_slot());
    common = 0;
  }
  cached_.resize(common);
  return static_cast<uint32_t>(common);
}

Result<Session::Answer> Session::answer(std::span<const uint32_t> prompt, const GenerateOptions& options,
                                        const TokenCallback& on_token) {
  if (prompt.empty()) return usage_error("the prompt is empty. Give at least one character.");
  if (prompt.size() > engine_->context()) {
    return does_not_fit(fmt::format(
        "the prompt has {} tokens and the bundle's context is {}. Shorten it, or compile the bundle with a "
        "larger --max-ctx.",
        prompt.size(), engine_->context()));
  }
  Answer answer;
  answer.prompt_tokens = static_cast<uint32_t>(prompt.size());
  PLOW_TRY(answer.reused_tokens, keep_common_prefix(prompt));
  auto generated = generate(*engine_, slot_, prompt.subspan(answer.reused_tokens), options, on_token);
  if (!generated.ok()) {
    // Chunks of the prompt may be in the cache, and tokens of an answer that is lost: keep what is known to
    // be the prompt's.
    const uint32_t known = std::min<uint32_t>(engine_->position(slot_), answer.prompt_tokens);
    if (!engine_->rewind(slot_, known).ok()) {
      engine_->close_slot(slot_);
      PLOW_TRY(slot_, engine_->open_slot());
    }
    cached_.assign(prompt.begin(), prompt.begin() + engine_->position(slot_));
    return generated.error();
  }
  answer.generated = std::move(generated).value();
  cached_.assign(prompt.begin(), prompt.end());
  cached_.insert(cached_.end(), answer.generated.tokens.begin(), answer.generated.tokens.end());
  cached_.resize(engine_->position(slot_));
  return answer;
}

}  // namespace plow
