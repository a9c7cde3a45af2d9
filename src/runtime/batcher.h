// Continuous batching: many answers share the steps of one engine. Decode rows and chunks of prompts ride in
// the same step; a sequence joins when there is room for it and leaves when it ends, without the others
// noticing. Which tokens a sequence gets does not depend on its neighbours: rows are independent and draws
// are keyed by seed and position.
//
// Sequences that begin alike share the whole blocks of their beginning: what one has computed, another takes
// over, also when the first has ended and its blocks were not needed since. Rows have the same bits however
// they came into the cache, so no answer depends on what was shared.
//
// When the cache runs out, the sequence that ranks last gives up its slot and waits; what it was told so far
// is kept, and fed again as if it were prompt when there is room.
#pragma once

#include "runtime/engine.h"
#include "runtime/prefix_names.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace plow {

enum class EndReason : uint8_t {
  kStopToken,  // a token of stop_ids was picked, which is not part of the answer; or its rule is complete
  kMaxTokens,
  kContext,  // the context is full
  kCancelled,
  kFailed,  // the step or the rule failed, the logits are no numbers, or the cache cannot hold the sequence
            // alone: `message` says which
};

struct AnswerEnd {
  EndReason reason = EndReason::kMaxTokens;
  std::string message;         // of kFailed
  uint32_t answer_tokens = 0;  // that on_token was told
};

// What an answer may consist of, token by token: a grammar. Called on the thread that runs the steps.
class AnswerRule {
 public:
  virtual ~AnswerRule() = default;
  // The tokens that may come next, as SamplingParams::mask has them; the same until accept(). Stop tokens are
  // among them when the answer may end here. Errors: the rule cannot tell; the answer fails.
  virtual Result<const uint32_t*> allowed() = 0;
  // Takes a token that was allowed and is none of the stop tokens; true when the answer is then complete.
  virtual bool accept(uint32_t token) = 0;
};

// A token of an answer, or of a prompt that is scored.
struct AnswerToken {
  uint32_t token = 0;
  float logprob = 0;               // under softmax of the logits as the model gives them
  std::span<const Sampled> top{};  // the sampling's n_top likeliest tokens; until the callback returns
};

// One answer that is wanted.
struct AnswerRequest {
  std::vector<uint32_t> prompt;                 // at least one token
  uint32_t max_tokens = 256;                    // at least 1; 0 when the prompt is scored
  SamplingParams sampling = greedy_sampling();  // prompt_tokens and bias are set here
  std::vector<TokenBias> biases;                // tokens ascending
  bool score_prompt = false;                    // tell the tokens of the prompt from the second on
  std::vector<uint32_t> stop_ids;
  int32_t priority = 0;              // the higher goes first; equal ones in order of arrival
  std::string cache_salt;            // only requests of the same salt share what they begin with
  std::shared_ptr<AnswerRule> rule;  // of this answer alone; null: any tokens
  // Called between steps, on the thread that runs them; they must not block and not call the batcher.
  // Once, before the first token: how many of the prompt's were in the cache and not computed.
  std::function<void(uint32_t cached_tokens)> on_begin;
  std::function<void(const AnswerToken& token)> on_token;
  std::function<void(const AnswerToken& token)> on_prompt_token;  // of score_prompt, all before on_token
  std::function<void(const AnswerEnd& end)> on_end;               // once, last
};

struct BatchOptions {
  uint32_t step_rows = 0;      // rows of a step at most; 0: as many as the bundle's largest program takes
  uint32_t steps_at_once = 1;  // decode steps that run without the host when one sequence runs alone; n
                               // sequences run that many divided by n
  bool share_prefixes = true;
};

struct BatchCounts {
  uint32_t running = 0, waiting = 0;
  uint64_t steps = 0;          // that were submitted to the engine
  uint64_t prompt_tokens = 0;  // fed, what was fed again after a preemption included
  uint64_t answer_tokens = 0;
  uint64_t preemptions = 0;
  uint64_t asked_tokens = 0;             // of prompts that were looked for in the cache
  uint64_t shared_tokens = 0;            // and found
  uint64_t evictions = 0;                // blocks that lost their name for want of room
  uint64_t kept_blocks = 0;              // of the free ones, those that can still be taken over
  uint64_t free_blocks = 0, blocks = 0;  // of the cache, over all KV groups
};

// Adds what only counts up, and leaves what is of the moment.
void add_totals(BatchCounts& to, const BatchCounts& from);

class Batcher {
 public:
  // REQUIRES that the engine outlives the batcher, has no open slots, and is used by nothing else.
  explicit Batcher(Engine& engine, const BatchOptions& options = {});

  // Whether the request can be answered at all. Errors: kUsage (an empty prompt, a token outside of the
  // vocabulary, max_tokens of 0), kDoesNotFit (no room for one token after the prompt). Reads only what never
  // changes: any thread may call it.
  Status check(const AnswerRequest& request) const;

  // REQUIRES that check() passed and an id that is not in use.
  void add(uint64_t id, AnswerRequest request);
  // Ends the answer with kCancelled; nothing happens when it ended before.
  void cancel(uint64_t id);
  void cancel_all();

  bool idle() const { return running_.empty() && waiting_.empty(); }
  // Runs one step (or one run of several) and tells what came. REQUIRES !idle().
  void run_step();

  BatchCounts counts() const;

 private:
  struct Sequence {
    explicit Sequence(PrefixNames its_names) : names(std::move(its_names)) {}
    uint64_t id = 0;
    uint64_t arrival = 0;
    AnswerRequest request;
    std::vector<uint32_t> tokens;  // prompt and answer; the cache holds a prefix of it
    uint32_t answered = 0;
    uint32_t scored = 1;  // tokens of the prompt that were told or, as the first, have no score
    uint32_t slot = 0;    // of a running one
    PrefixNames names;
    uint32_t named_blocks = 0;   // of the slot
    uint32_t reached = 0;        // tokens that were in the cache at some time, in this slot or another
    uint32_t cached_tokens = 0;  // as of on_begin
    bool begun = false;          // on_begin was called
  };
  struct Part {       // of a step
    size_t sequence;  // index into running_
    uint32_t n_tokens;
    uint32_t n_given;  // rows in front of the last one that score the prompt, one behind the other
    uint32_t first_given;
    bool sampled;  // the last row picks a token
  };

  static bool ranks_before(const Sequence& a, const Sequence& b);
  uint32_t unfed(const Sequence& sequence) const;
  std::span<const BlockName> names_of(Sequence& sequence) const;
  bool cache_holds(Sequence& candidate) const;
  Status share(Sequence& sequence);
  void share_more();
  void name_blocks(Sequence& sequence);
  void admit();
  void fail_broken_rules();
  Part part_of(size_t sequence, uint32_t most_rows, uint32_t most_samples) const;
  std::vector<Part> compose() const;
  uint32_t steps_at_once(const std::vector<Part>& parts) const;
  Result<StepResult> submit(const std::vector<Part>& parts, uint32_t n_steps);
  void make_room(const Error& error);
  void digest(const std::vector<Part>& parts, const StepResult& result);
  bool accept(Sequence& sequence, const StepToken& token);
  void end(Sequence& sequence, EndReason reason, const std::string& message = {});
  void fail(size_t running, const std::string& message);
  void fail_all(const std::vector<Part>& parts, const Error& error);

  Engine& engine_;
  uint32_t step_rows_;
  uint32_t most_running_;
  uint32_t steps_at_once_;
  bool share_prefixes_;
  std::vector<Sequence> running_;      // in rank order
  std::vector<Sequence> waiting_;      // in rank order
  std::vector<uint32_t> row_numbers_;  // 0, 1, ...: what sampled rows are slices of
  uint64_t arrivals_ = 0;
  BatchCounts counts_;
};

}  // namespace plow
