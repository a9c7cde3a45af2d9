#include "runtime/engine.h"

#include "runtime/engine_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plow {

SamplingParams greedy_sampling() {
  SamplingParams params{};
  params.flags = kSampleGreedy;
  params.temperature = 1;
  params.top_p = 1;
  params.repetition_penalty = 1;
  return params;
}

namespace {

Status check_biases(const SamplingParams& params, uint32_t vocab) {
  if (params.n_bias > kMaxBias)
    return usage_error(fmt::format("{} tokens have a bias; up to {} may.", params.n_bias, kMaxBias));
  for (uint32_t i = 0; i < params.n_bias; ++i) {
    const TokenBias& bias = params.bias[i];
    if (bias.token >= vocab)
      return usage_error(
          fmt::format("Token {} has a bias and is not in the vocabulary of {}.", bias.token, vocab));
    if (!std::isfinite(bias.bias)) return usage_error("The bias of a token must be finite.");
    if (i > 0 && bias.token <= params.bias[i - 1].token)
      return usage_error("Biases must be in the order of their tokens, one a token.");
  }
  return {};
}

}  // namespace

Status check_sampling(const SamplingParams& params, uint32_t vocab) {
  const bool greedy = (params.flags & kSampleGreedy) != 0;
  if (!greedy && !(params.temperature > 0 && std::isfinite(params.temperature))) {
    return usage_error(
        fmt::format("A temperature of {} cannot be sampled with; it must be above 0 (or sampling greedy).",
                    params.temperature));
  }
  if (!greedy && !(params.top_p > 0))
    return usage_error(fmt::format("top_p is {}; it must be above 0, and 1 turns it off.", params.top_p));
  if (!greedy && !(params.min_p >= 0 && params.min_p <= 1))
    return usage_error(fmt::format("min_p is {}; it must lie in 0 .. 1.", params.min_p));
  if (!(params.repetition_penalty > 0 && std::isfinite(params.repetition_penalty))) {
    return usage_error(fmt::format("repetition_penalty is {}; it must be above 0, and 1 turns it off.",
                                   params.repetition_penalty));
  }
  if (!std::isfinite(params.presence_penalty) || !std::isfinite(params.frequency_penalty)) {
    return usage_error("presence_penalty and frequency_penalty must be finite; 0 turns them off.");
  }
  if (params.n_top > kMaxTop) {
    return usage_error(
        fmt::format("{} likeliest tokens were asked for; up to {} are told.", params.n_top, kMaxTop));
  }
  return check_biases(params, vocab);
}

// One step of an engine.
struct EngineStep {
  Engine::State& state;
  std::span<const StepRequest> requests;
  const StepOptions& options;
  uint32_t n_rows = 0, n_samples = 0;

  // The request by itself.
  Status check_request(const StepRequest& request) {
    if (request.slot >= state.slots.size() || !state.slots[request.slot].open) {
      return usage_error(fmt::format("Slot {} is not open.", request.slot));
    }
    if (request.tokens.empty())
      return usage_error(fmt::format("Slot {} was given a step without tokens.", request.slot));
    for (uint32_t token : request.tokens) {
      if (token >= state.bundle.header().vocab) {
        return usage_error(
            fmt::format("Token {} is not in the vocabulary of {}.", token, state.bundle.header().vocab));
      }
    }
    for (size_t i = 0; i < request.sample_at.size(); ++i) {
      if (request.sample_at[i] >= request.tokens.size() ||
          (i > 0 && request.sample_at[i] <= request.sample_at[i - 1])) {
        return usage_error(fmt::format("Slot {}: the rows to sample must be ascending and below {}.",
                                       request.slot, request.tokens.size()));
      }
    }
    if (options.n_steps > 1 && (request.tokens.size() != 1 || request.sample_at.size() != 1)) {
      return usage_error(fmt::format("Slot {}: a run of {} steps needs one token that is sampled.",
                                     request.slot, options.n_steps));
    }
    if (!request.sample_at.empty())
      PLOW_TRY_STATUS(check_sampling(request.sampling, state.bundle.header().vocab));
    if (request.given.size() > request.sample_at.size() || (options.n_steps > 1 && !request.given.empty())) {
      return usage_error(fmt::format("Slot {}: {} tokens are given for {} rows of {} steps.", request.slot,
                                     request.given.size(), request.sample_at.size(), options.n_steps));
    }
    for (const uint32_t token : request.given) {
      if (token >= state.bundle.header().vocab) {
        return usage_error(
            fmt::format("Token {} is not in the vocabulary of {}.", token, state.bundle.header().vocab));
      }
    }
    const uint64_t end =
        uint64_t{state.slots[request.slot].position} + request.tokens.size() + options.n_steps - 1;
    if (end > state.context) {
      return does_not_fit(
          fmt::format("The sequence of slot {} has {} tokens and would have {}; the context is {}. Start a "
                      "shorter one, or "
                      "compile the bundle for a longer context.",
                      request.slot, state.slots[request.slot].position, end, state.context));
    }
    return {};
  }

  Status check() {
    if (requests.empty()) return usage_error("A step needs at least one request.");
    if (options.n_steps == 0 || options.n_steps > kMaxSteps) {
      return usage_error(
          fmt::format("A run has 1 to {} steps; {} were asked for.", kMaxSteps, options.n_steps));
    }
    if (options.logits && options.n_steps > 1)
      return usage_error("Logits can be copied from a run of one step only.");
    uint64_t rows = 0, samples = 0;
    std::vector<bool> seen(state.slots.size(), false);
    for (const StepRequest& request : requests) {
      PLOW_TRY_STATUS(check_request(request));
      if (seen[request.slot]) return usage_error(fmt::format("Slot {} is in the step twice.", request.slot));
      seen[request.slot] = true;
      rows += request.tokens.size();
      samples += request.sample_at.size();
    }
    if (rows > state.max_rows || samples > state.max_samples) {
      return does_not_fit(
          fmt::format("The step has {} rows and {} samples; the bundle's programs take up to {} and {}. Cut "
                      "it into several.",
                      rows, samples, state.max_rows, state.max_samples));
    }
    n_rows = static_cast<uint32_t>(rows);
    n_samples = static_cast<uint32_t>(samples);
    return {};
  }

  // The first program whose maxima fit.
  Status choose_program() {
    const auto programs = state.bundle.programs();
    const auto fits = std::find_if(programs.begin(), programs.end(), [&](const ProgramView& program) {
      return n_rows <= program.entry->max_rows && n_samples <= program.entry->max_samples;
    });
    if (fits == programs.end()) {
      return does_not_fit(
          fmt::format("No program of the bundle takes {} rows with {} samples. Cut the step into several.",
                      n_rows, n_samples));
    }
    state.step.program = static_cast<uint32_t>(fits - programs.begin());
    return {};
  }

  Status reserve_blocks() {
    std::vector<KvRun> runs;
    for (const StepRequest& request : requests) {
      runs.push_back({request.slot, state.slots[request.slot].position,
                      static_cast<uint32_t>(request.tokens.size()) + options.n_steps - 1});
    }
    return state.cache->reserve(runs);
  }

  void fill_descriptor() {
    StepArrays& arrays = state.arrays;
    uint32_t row = 0, sample = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      const StepRequest& request = requests[i];
      const uint32_t first = state.slots[request.slot].position;
      const auto count = static_cast<uint32_t>(request.tokens.size());
      arrays.spans[i] = {row, count, request.slot, first};
      for (size_t s = 0; s < request.sample_at.size(); ++s, ++sample) {
        arrays.sample_rows[sample] = row + request.sample_at[s];
        SamplingParams& params = arrays.sampling[sample] = request.sampling;
        params.n_top = std::min(params.n_top, state.bundle.header().vocab);
        params.top = arrays.top.data() + size_t{sample} * kMaxSteps * kMaxTop;
        params.flags &= kSampleGreedy;
        if (s >= request.given.size()) continue;
        params.flags = kSampleGiven;
        params.given = request.given[s];
      }
      for (uint32_t t = 0; t < count; ++t, ++row) {
        arrays.token_ids[row] = request.tokens[t];
        arrays.positions[row] = first + t;
        arrays.row_slots[row] = request.slot;
        arrays.history[size_t{request.slot} * state.context + first + t] = request.tokens[t];
      }
    }
    StepDescriptor& step = state.step;
    step.n_rows = n_rows;
    step.n_samples = n_samples;
    step.n_spans = static_cast<uint32_t>(requests.size());
    step.n_steps = options.n_steps;
    step.step = 0;
  }

  Status ring() {
    PLOW_TRY(const std::optional<Fault> fault, state.device->run(state.step));
    if (fault) return fault_error(*fault);
    return {};
  }

  Error fault_error(const Fault& fault) const {
    const ProgramView& program = state.bundle.programs()[state.step.program];
    const auto packets = program.packets_of(fault.worker);
    if (fault.counter == Fault::kDoneWord || fault.packet >= packets.size()) {
      return device_error(fmt::format(
          "Worker {} waited for the end of step {} and saw only that of step {}. The step failed.",
          fault.worker, fault.expected, fault.seen));
    }
    const char* name = op_name(static_cast<Op>(packets[fault.packet].body));
    return device_error(
        fmt::format("Worker {} waited at its packet {} ({}) of program {} for counter {} to reach {}; it "
                    "stayed at {}. The step "
                    "failed.",
                    fault.worker, fault.packet, name != nullptr ? name : "unknown", state.step.program,
                    fault.counter, fault.expected, fault.seen));
  }

  // The sampled rows' logits still lie in the arena: nothing runs after sampling.
  Status copy_logits(StepResult& result) const {
    const ProgramView& program = state.bundle.programs()[state.step.program];
    const auto sample =
        std::find_if(program.packets.begin(), program.packets.end(),
                     [](const Packet& packet) { return static_cast<Op>(packet.body) == Op::kSample; });
    if (sample == program.packets.end())
      return usage_error("The bundle's program samples nothing, so there are no logits.");
    const TensorEntry& logits = program.tensors[sample->operand[0]];
    result.logits.resize(size_t{n_samples} * logits.cols);
    for (uint32_t s = 0; s < n_samples; ++s) {
      const std::span row(result.logits.data() + size_t{s} * logits.cols, logits.cols);
      PLOW_TRY_STATUS(state.device->read_arena(logits.offset + size_t{s} * logits.row_stride,
                                               std::as_writable_bytes(row)));
    }
    return {};
  }

  Result<StepResult> collect() const {
    StepResult result;
    result.program = state.step.program;
    result.n_samples = n_samples;
    for (uint32_t k = 0; k < options.n_steps; ++k) {
      const Sampled* sampled = state.arrays.sampled.data() + size_t{k} * n_samples;
      const SamplingParams* params = state.arrays.sampling.data();
      for (uint32_t i = 0; i < requests.size(); ++i) {
        for (uint32_t at : requests[i].sample_at) {
          const std::span<const Sampled> top(params->top + size_t{k} * params->n_top, params->n_top);
          result.tokens.push_back({i, at, sampled->token, sampled->logprob, top});
          ++sampled, ++params;
        }
      }
    }
    if (options.logits) PLOW_TRY_STATUS(copy_logits(result));
    return result;
  }

  Result<StepResult> run() {
    PLOW_TRY_STATUS(check());
    PLOW_TRY_STATUS(choose_program());
    PLOW_TRY_STATUS(reserve_blocks());
    fill_descriptor();
    PLOW_TRY_STATUS(ring());
    for (const StepRequest& request : requests) {
      state.slots[request.slot].position +=
          static_cast<uint32_t>(request.tokens.size()) + options.n_steps - 1;
    }
    return collect();
  }
};

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Result<uint32_t> Engine::open_slot() {
  for (uint32_t i = 0; i < state_->slots.size(); ++i) {
    if (state_->slots[i].open) continue;
    state_->slots[i] = {true, 0, 0};
    return i;
  }
  return does_not_fit(fmt::format("All {} slots are taken. Close a sequence first.", state_->slots.size()));
}

void Engine::close_slot(uint32_t slot) {
  PLOW_CHECK(slot < state_->slots.size() && state_->slots[slot].open, "slot {} is not open", slot);
  state_->cache->release(slot);
  state_->slots[slot].open = false;
}

uint32_t Engine::position(uint32_t slot) const {
  PLOW_CHECK(slot < state_->slots.size() && state_->slots[slot].open, "slot {} is not open", slot);
  return state_->slots[slot].position;
}

Status Engine::rewind(uint32_t slot, uint32_t position) {
  if (slot >= state_->slots.size() || !state_->slots[slot].open)
    return usage_error(fmt::format("Slot {} is not open.", slot));
  if (position > state_->slots[slot].position) {
    return usage_error(fmt::format("Slot {} has {} tokens; it cannot go back to {}.", slot,
                                   state_->slots[slot].position, position));
  }
  if (position < state_->slots[slot].named) {
    return usage_error(fmt::format("Slot {} cannot go back to position {}: its first {} tokens are shared.",
                                   slot, position, state_->slots[slot].named));
  }
  if (!state_->cache->holds_window_of(slot, position)) {
    return usage_error(fmt::format(
        "Slot {} cannot go back to position {}: the cache no longer holds what a row there reads. Submit the "
        "sequence again.",
        slot, position));
  }
  state_->slots[slot].position = position;
  return {};
}

uint32_t Engine::block_tokens() const {
  const auto groups = state_->bundle.kv_groups();
  return groups.empty() ? 0 : groups[0].block_tokens;  // load.cpp takes no bundle where they differ
}

Result<uint32_t> Engine::share_blocks(uint32_t slot, std::span<const uint32_t> tokens,
                                      std::span<const BlockName> names) {
  const uint32_t position = this->position(slot), block = block_tokens();
  if (block == 0 || position % block != 0) return 0u;
  const uint32_t n = state_->cache->shareable(position / block, names);
  if (n == 0) return 0u;
  const auto taken = tokens.subspan(position, n * block - position);
  uint32_t* history = state_->arrays.history.data() + size_t{slot} * state_->context + position;
  std::copy(taken.begin(), taken.end(), history);
  PLOW_TRY_STATUS(state_->device->write_history(slot, position, taken));
  state_->cache->share(slot, position / block, names.first(n));
  state_->slots[slot].position = state_->slots[slot].named = n * block;
  return static_cast<uint32_t>(taken.size());
}

uint32_t Engine::shareable_in_use(uint32_t kv_group, std::span<const BlockName> names) const {
  const BlockPool& blocks = pool(kv_group);
  const auto shared = names.first(state_->cache->shareable(0, names));
  return static_cast<uint32_t>(std::ranges::count_if(shared, [&](const BlockName& name) {
    const auto block = blocks.find(name);
    return block && blocks.in_use(*block);
  }));
}

void Engine::name_blocks(uint32_t slot, uint32_t first, std::span<const BlockName> names) {
  const uint32_t end = (first + static_cast<uint32_t>(names.size())) * block_tokens();
  PLOW_CHECK(end <= position(slot), "blocks up to {} of slot {} are named, which ends at {}", end, slot,
             position(slot));
  state_->cache->name(slot, first, names);
  state_->slots[slot].named = std::max(state_->slots[slot].named, end);
}

Result<StepResult> Engine::step(std::span<const StepRequest> requests, const StepOptions& options) {
  return EngineStep{*state_, requests, options}.run();
}

const BundleFile& Engine::bundle() const { return state_->bundle; }
IsaLevel Engine::isa_level() const { return state_->isa; }
std::string Engine::device_name() const { return state_->device->name(); }
Result<std::vector<std::vector<PacketTimes>>> Engine::packet_times(uint32_t program) {
  return state_->device->read_times(program);
}
Result<double> Engine::read_bandwidth() { return state_->device->read_bandwidth(); }
uint32_t Engine::n_workers() const { return state_->bundle.header().n_workers; }
uint32_t Engine::n_slots() const { return static_cast<uint32_t>(state_->slots.size()); }
uint32_t Engine::context() const { return state_->context; }
uint32_t Engine::vocab() const { return state_->bundle.header().vocab; }
uint32_t Engine::max_rows() const { return state_->max_rows; }
uint32_t Engine::max_samples() const { return state_->max_samples; }
const BlockPool& Engine::pool(uint32_t kv_group) const { return state_->cache->pool(kv_group); }
uint32_t Engine::held_blocks(uint32_t kv_group, uint32_t slot) const {
  return state_->cache->held(kv_group, slot);
}
uint32_t Engine::free_blocks(uint32_t kv_group) const { return pool(kv_group).n_free(); }
uint32_t Engine::n_blocks(uint32_t kv_group) const { return pool(kv_group).n_blocks(); }

}  // namespace plow
