#include "runtime/batcher.h"

#include "base/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace plow {
namespace {

uint32_t at_most(uint32_t wanted, uint32_t most) { return wanted == 0 ? most : std::min(wanted, most); }

}  // namespace

void add_totals(BatchCounts& to, const BatchCounts& from) {
  to.steps += from.steps;
  to.prompt_tokens += from.prompt_tokens;
  to.answer_tokens += from.answer_tokens;
  to.preemptions += from.preemptions;
  to.asked_tokens += from.asked_tokens;
  to.shared_tokens += from.shared_tokens;
  to.evictions += from.evictions;
}

Batcher::Batcher(Engine& engine, const BatchOptions& options)
    : engine_(engine),
      step_rows_(at_most(options.step_rows, engine.max_rows())),
      // All that run can decode in one step: none is left out for want of a row or a sample.
      most_running_(std::min({engine.n_slots(), engine.max_samples(), step_rows_})),
      steps_at_once_(std::clamp(options.steps_at_once, 1u, kMaxSteps)),
      share_prefixes_(options.share_prefixes && engine.block_tokens() > 0),
      row_numbers_(step_rows_) {
  std::iota(row_numbers_.begin(), row_numbers_.end(), 0u);
}

Status Batcher::check(const AnswerRequest& request) const {
  if (request.prompt.empty()) return usage_error("The prompt is empty; it needs at least one token.");
  if (request.max_tokens == 0 && !request.score_prompt)
    return usage_error("max_tokens is 0; an answer has at least one token.");
  for (const uint32_t token : request.prompt) {
    if (token >= engine_.vocab()) {
      return usage_error(fmt::format("Token {} is not in the vocabulary of {}.", token, engine_.vocab()));
    }
  }
  if (request.prompt.size() > engine_.context()) {
    return does_not_fit(
        fmt::format("The prompt has {} tokens and the context is {}. Shorten the prompt, or compile the "
                    "bundle for a longer context.",
                    request.prompt.size(), engine_.context()));
  }
  SamplingParams sampling = request.sampling;
  sampling.bias = request.biases.data();
  sampling.n_bias = static_cast<uint32_t>(request.biases.size());
  return check_sampling(sampling, engine_.vocab());
}

bool Batcher::ranks_before(const Sequence& a, const Sequence& b) {
  if (a.request.priority != b.request.priority) return a.request.priority > b.request.priority;
  return a.arrival < b.arrival;
}

void Batcher::add(uint64_t id, AnswerRequest request) {
  Sequence sequence(PrefixNames(std::max(1u, engine_.block_tokens()), request.cache_salt));
  sequence.id = id;
  sequence.arrival = arrivals_++;
  sequence.tokens = request.prompt;
  if (share_prefixes_ && !request.score_prompt) counts_.asked_tokens += request.prompt.size();
  sequence.request = std::move(request);
  sequence.request.sampling.prompt_tokens = static_cast<uint32_t>(sequence.tokens.size());
  sequence.request.sampling.bias = sequence.request.biases.data();
  sequence.request.sampling.n_bias = static_cast<uint32_t>(sequence.request.biases.size());
  const auto at = std::upper_bound(waiting_.begin(), waiting_.end(), sequence, ranks_before);
  waiting_.insert(at, std::move(sequence));
}

void Batcher::cancel(uint64_t id) {
  const auto is_it = [&](const Sequence& sequence) { return sequence.id == id; };
  if (const auto it = std::ranges::find_if(running_, is_it); it != running_.end()) {
    engine_.close_slot(it->slot);
    end(*it, EndReason::kCancelled);
    running_.erase(it);
  } else if (const auto w = std::ranges::find_if(waiting_, is_it); w != waiting_.end()) {
    end(*w, EndReason::kCancelled);
    waiting_.erase(w);
  }
}

void Batcher::cancel_all() {
  while (!idle()) cancel(running_.empty() ? waiting_.front().id : running_.front().id);
}

uint32_t Batcher::unfed(const Sequence& sequence) const {
  return static_cast<uint32_t>(sequence.tokens.size()) - engine_.position(sequence.slot);
}

// Of what the sequence can take over: all whole blocks but that of its last token, which has to be computed;
// none when the prompt is scored, which needs its rows.
std::span<const BlockName> Batcher::names_of(Sequence& sequence) const {
  if (!share_prefixes_ || sequence.request.score_prompt) return {};
  return sequence.names.of(std::span<const uint32_t>(sequence.tokens).first(sequence.tokens.size() - 1));
}

// Whether, in every KV group, the blocks of what runs and of the candidate are there, with one more for each
// sequence to grow into. Shared blocks count once where sequences keep them to their end; those of a window
// are given back and others taken while the sequence goes on.
bool Batcher::cache_holds(Sequence& candidate) const {
  const auto names = names_of(candidate);
  const auto groups = engine_.bundle().kv_groups();
  for (uint32_t g = 0; g < groups.size(); ++g) {
    const auto blocks = [&](const Sequence& sequence) {
      const auto context = static_cast<uint32_t>(sequence.tokens.size()) + 1;
      return uint64_t{blocks_per_sequence(groups[g], context, step_rows_)} + 1;
    };
    const bool keeps = groups[g].window == 0;
    uint64_t needed = blocks(candidate);
    if (keeps) needed += engine_.n_blocks(g) - engine_.free_blocks(g);
    if (keeps) needed -= std::min<uint64_t>(needed, engine_.shareable_in_use(g, names));
    for (const Sequence& sequence : running_) {
      const uint64_t most = blocks(sequence);
      needed += keeps ? most - std::min<uint64_t>(most, engine_.held_blocks(g, sequence.slot)) : most;
    }
    if (needed > engine_.n_blocks(g)) return false;
  }
  return true;
}

// Takes over what others have computed of what the sequence has still to feed.
Status Batcher::share(Sequence& sequence) {
  PLOW_TRY(const uint32_t taken, engine_.share_blocks(sequence.slot, sequence.tokens, names_of(sequence)));
  if (taken == 0) return {};
  const uint32_t position = engine_.position(sequence.slot);
  sequence.named_blocks = position / engine_.block_tokens();
  const uint32_t fresh = position - std::clamp(sequence.reached, position - taken, position);
  sequence.reached = std::max(sequence.reached, position);
  if (sequence.answered > 0) return {};  // its prompt was fed before
  sequence.cached_tokens += fresh;
  counts_.shared_tokens += fresh;
  return {};
}

// Sequences that came together begin together: the first computes, the others take over.
void Batcher::share_more() {
  if (!share_prefixes_) return;
  for (size_t i = running_.size(); i-- > 0;) {
    if (unfed(running_[i]) == 1) continue;
    const Status status = share(running_[i]);
    if (!status.ok()) fail(i, status.error().message);
  }
}

// Lets others take over what was computed.
void Batcher::name_blocks(Sequence& sequence) {
  const uint32_t position = engine_.position(sequence.slot);
  sequence.reached = std::max(sequence.reached, position);
  if (!share_prefixes_) return;
  // In a run of several steps the engine may have gone on behind the end of the answer.
  const size_t known = std::min<size_t>(position, sequence.tokens.size());
  const auto names = sequence.names.of(std::span<const uint32_t>(sequence.tokens).first(known));
  engine_.name_blocks(sequence.slot, sequence.named_blocks, names.subspan(sequence.named_blocks));
  sequence.named_blocks = static_cast<uint32_t>(names.size());
}

void Batcher::admit() {
  while (!waiting_.empty() && running_.size() < most_running_) {
    // A sequence that runs alone is not held back: whether it fits is then found by trying.
    if (!running_.empty() && !cache_holds(waiting_.front())) return;
    const Result<uint32_t> slot = engine_.open_slot();
    PLOW_CHECK(slot.ok(), "no slot for a sequence while {} of {} run", running_.size(), most_running_);
    Sequence sequence = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    sequence.slot = *slot;
    sequence.named_blocks = 0;
    const auto at = std::upper_bound(running_.begin(), running_.end(), sequence, ranks_before);
    running_.insert(at, std::move(sequence));
  }
}

// The next rows of a sequence, as many as are left over for it. Row i scores the token behind it.
Batcher::Part Batcher::part_of(size_t sequence, uint32_t most_rows, uint32_t most_samples) const {
  const Sequence& s = running_[sequence];
  const uint32_t left = unfed(s), position = engine_.position(s.slot);
  const auto prompt = static_cast<uint32_t>(s.request.prompt.size());
  Part part{sequence, std::min(left, most_rows), 0, 0, false};
  if (s.request.score_prompt && s.scored < prompt && s.scored - 1 < position + part.n_tokens) {
    part.first_given = s.scored - 1 - position;
    part.n_given = std::min({part.n_tokens - part.first_given, prompt - s.scored, most_samples});
    if (part.n_given < prompt - s.scored) part.n_tokens = part.first_given + part.n_given;
  }
  part.sampled = part.n_tokens == left && s.request.max_tokens > 0;
  if (part.sampled && part.n_given == most_samples) {  // its last row waits for a step with room
    --part.n_tokens;
    part.sampled = false;
  }
  return part;
}

// Rows that decode first, since their users watch; then chunks of prompts with the rows and samples that are
// left.
std::vector<Batcher::Part> Batcher::compose() const {
  std::vector<Part> parts;
  uint32_t rows = step_rows_, samples = engine_.max_samples();
  for (const bool decodes : {true, false}) {
    for (size_t i = 0; i < running_.size(); ++i) {
      if ((unfed(running_[i]) == 1) != decodes || rows == 0) continue;
      const Part part = part_of(i, rows, samples);
      if (part.n_tokens == 0) continue;
      parts.push_back(part);
      rows -= part.n_tokens;
      samples -= part.n_given + (part.sampled ? 1 : 0);
    }
  }
  return parts;
}

// Several steps only when nobody waits for a place or is in the midst of a prompt, and no longer than until
// the first sequence must end.
uint32_t Batcher::steps_at_once(const std::vector<Part>& parts) const {
  uint32_t steps = std::max(1u, steps_at_once_ / static_cast<uint32_t>(parts.size()));
  if (!waiting_.empty()) return 1;
  for (const Part& part : parts) {
    const Sequence& sequence = running_[part.sequence];
    if (part.n_tokens != 1 || !part.sampled || sequence.request.rule) return 1;
    steps = std::min({steps, sequence.request.max_tokens - sequence.answered,
                      engine_.context() - engine_.position(sequence.slot)});
  }
  return steps;
}

Result<StepResult> Batcher::submit(const std::vector<Part>& parts, uint32_t n_steps) {
  std::vector<StepRequest> requests;
  for (const Part& part : parts) {
    const Sequence& sequence = running_[part.sequence];
    const std::span<const uint32_t> tokens(sequence.tokens);
    const uint32_t position = engine_.position(sequence.slot);
    requests.push_back({sequence.slot, tokens.subspan(position, part.n_tokens),
                        std::span(row_numbers_)
                            .subspan(part.n_given > 0 ? part.first_given : part.n_tokens - 1,
                                     part.n_given + (part.sampled ? 1 : 0)),
                        sequence.request.sampling,
                        tokens.subspan(position + part.first_given + 1, part.n_given)});
    if (sequence.request.rule) requests.back().sampling.mask = *sequence.request.rule->allowed();
  }
  return engine_.step(requests, {n_steps, false});
}

// A rule that cannot tell what may come next ends its answer, before it holds up the others.
void Batcher::fail_broken_rules() {
  for (size_t i = running_.size(); i-- > 0;) {
    Sequence& sequence = running_[i];
    if (!sequence.request.rule) continue;
    const Result<const uint32_t*> allowed = sequence.request.rule->allowed();
    if (!allowed.ok()) fail(i, allowed.error().message);
  }
}

void Batcher::run_step() {
  PLOW_CHECK(!idle(), "a step without sequences");
  admit();
  share_more();
  fail_broken_rules();
  if (running_.empty()) return;
  const std::vector<Part> parts = compose();
  uint32_t n_steps = steps_at_once(parts);
  Result<StepResult> result = submit(parts, n_steps);
  if (!result.ok() && result.error().error_class == ErrorClass::kDoesNotFit && n_steps > 1) {
    n_steps = 1;
    result = submit(parts, n_steps);
  }
  if (result.ok()) {
    counts_.steps += n_steps;
    for (const Part& part : parts) {
      const Sequence& sequence = running_[part.sequence];
      if (sequence.answered == 0) counts_.prompt_tokens += part.n_tokens;
    }
    digest(parts, *result);
  } else if (result.error().error_class == ErrorClass::kDoesNotFit) {
    make_room(result.error());
  } else {
    fail_all(parts, result.error());
  }
}

void Batcher::make_room(const Error& error) {
  Sequence last = std::move(running_.back());
  running_.pop_back();
  engine_.close_slot(last.slot);
  if (running_.empty()) {  // alone, and still too large
    end(last, EndReason::kFailed, error.message);
    return;
  }
  ++counts_.preemptions;
  const auto at = std::upper_bound(waiting_.begin(), waiting_.end(), last, ranks_before);
  waiting_.insert(at, std::move(last));
}

// Takes a picked token into the answer; whether the answer goes on.
bool Batcher::accept(Sequence& sequence, const StepToken& token) {
  if (!std::exchange(sequence.begun, true) && sequence.request.on_begin)
    sequence.request.on_begin(sequence.cached_tokens);
  if (!std::isfinite(token.logprob)) {
    end(sequence, EndReason::kFailed,
        "The model gives no token a probability: its logits are not numbers, or it rules out all that the "
        "grammar allows.");
    return false;
  }
  const auto& stops = sequence.request.stop_ids;
  if (std::ranges::find(stops, token.token) != stops.end()) {
    end(sequence, EndReason::kStopToken);
    return false;
  }
  sequence.tokens.push_back(token.token);
  ++sequence.answered;
  ++counts_.answer_tokens;
  if (sequence.request.on_token) sequence.request.on_token({token.token, token.logprob, token.top});
  if (sequence.request.rule && sequence.request.rule->accept(token.token)) {
    end(sequence, EndReason::kStopToken);
    return false;
  }
  if (sequence.answered == sequence.request.max_tokens) {
    end(sequence, EndReason::kMaxTokens);
    return false;
  }
  if (sequence.tokens.size() > engine_.context()) {
    end(sequence, EndReason::kContext);
    return false;
  }
  return true;
}

void Batcher::digest(const std::vector<Part>& parts, const StepResult& result) {
  std::vector<bool> ended(running_.size(), false);
  for (const StepToken& token : result.tokens) {
    const Part& part = parts[token.request];
    Sequence& sequence = running_[part.sequence];
    if (part.n_given > 0 && token.row < part.first_given + part.n_given) {
      ++sequence.scored;
      if (sequence.request.on_prompt_token)
        sequence.request.on_prompt_token({token.token, token.logprob, token.top});
    } else if (!ended[part.sequence]) {
      ended[part.sequence] = !accept(sequence, token);
    }
  }
  for (const Part& part : parts) {
    Sequence& sequence = running_[part.sequence];
    if (sequence.request.max_tokens > 0 || unfed(sequence) > 0) continue;
    ended[part.sequence] = true;
    end(sequence, EndReason::kMaxTokens);
  }
  for (const Part& part : parts) name_blocks(running_[part.sequence]);
  size_t kept = 0;
  for (size_t i = 0; i < running_.size(); ++i) {
    if (ended[i]) {
      engine_.close_slot(running_[i].slot);
    } else {
      if (kept != i) running_[kept] = std::move(running_[i]);
      ++kept;
    }
  }
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(kept), running_.end());
}

// Who was in the step cannot know which of its tokens are lost; who waits is not touched.
void Batcher::fail_all(const std::vector<Part>& parts, const Error& error) {
  std::vector<bool> failed(running_.size(), false);
  for (const Part& part : parts) failed[part.sequence] = true;
  for (size_t i = running_.size(); i-- > 0;) {
    if (failed[i]) fail(i, error.message);
  }
}

void Batcher::fail(size_t running, const std::string& message) {
  engine_.close_slot(running_[running].slot);
  end(running_[running], EndReason::kFailed, message);
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(running));
}

void Batcher::end(Sequence& sequence, EndReason reason, const std::string& message) {
  if (sequence.request.on_end) sequence.request.on_end({reason, message, sequence.answered});
}

BatchCounts Batcher::counts() const {
  BatchCounts counts = counts_;
  counts.running = static_cast<uint32_t>(running_.size());
  counts.waiting = static_cast<uint32_t>(waiting_.size());
  for (uint32_t g = 0; g < engine_.bundle().kv_groups().size(); ++g) {
    counts.free_blocks += engine_.free_blocks(g);
    counts.kept_blocks += engine_.pool(g).n_kept();
    counts.evictions += engine_.pool(g).evictions();
    counts.blocks += engine_.n_blocks(g);
  }
  return counts;
}

}  // namespace plow
