#include "interp/reference/machine.h"

#include "interp/reference/step_input.h"
#include "interp/reference/step_run.h"

#include <fmt/format.h>

#include <algorithm>

namespace plow::reference {

const char* finding_name(FindingKind kind) {
  switch (kind) {
    case FindingKind::kUnorderedRead:
      return "unordered read";
    case FindingKind::kUnorderedWrite:
      return "unordered write";
    case FindingKind::kNeverWritten:
      return "read of what was never written";
    case FindingKind::kWrongContent:
      return "wrong content";
    case FindingKind::kOwnInput:
      return "own input overwritten";
    case FindingKind::kWrittenTwice:
      return "written twice";
    case FindingKind::kNotWritten:
      return "not written";
    case FindingKind::kDeadlock:
      return "deadlock";
    case FindingKind::kCounter:
      return "counter";
    case FindingKind::kEndOfStep:
      return "end of step";
  }
  return "?";
}

Status verified(const StepOutput& output) {
  if (output.findings.empty()) return {};
  const Finding& first = output.findings.front();
  return verification_error(
      fmt::format("{}: {} (finding 1 of {})", finding_name(first.kind), first.text, output.findings.size()));
}

namespace {

MachineLimits limits_of(const BundleFile& bundle, const MachineOptions& options) {
  MachineLimits limits;
  limits.slots = options.slots;
  limits.context = options.context == 0 ? bundle.header().max_context : options.context;
  for (const KvGroup& group : bundle.kv_groups()) {
    const uint32_t blocks = (limits.context + group.block_tokens - 1) / group.block_tokens;
    limits.table_width = std::max(limits.table_width, blocks);
    limits.pool_blocks.push_back(limits.slots * blocks);
  }
  return limits;
}

uint32_t most_counters(const BundleFile& bundle) {
  uint32_t most = 0;
  for (const ProgramView& program : bundle.programs()) most = std::max(most, program.entry->n_counters);
  return most;
}

Device make_device(const BundleFile& bundle, std::span<const std::byte> tape, const MachineLimits& limits) {
  const uint32_t n_workers = bundle.header().n_workers;
  uint64_t arena_bytes = 0;
  uint32_t samples = 0;
  for (const ProgramView& program : bundle.programs()) {
    arena_bytes = std::max(arena_bytes, program.entry->arena_bytes);
    samples = std::max(samples, program.entry->max_samples);
  }
  Device device{Memory(bundle, tape, limits.pool_blocks),
                Shadow((arena_bytes + 3) / 4, n_workers),
                {},
                Shadow(samples, n_workers)};
  for (uint32_t g = 0; g < bundle.kv_groups().size(); ++g)
    device.kv.emplace_back(device.memory.kv_elements(g), n_workers);
  return device;
}

}  // namespace

class MachineState {
 public:
  MachineState(const BundleFile& bundle, std::span<const std::byte> tape, const MachineOptions& options)
      : bundle_(bundle),
        options_(options),
        limits_(limits_of(bundle, options)),
        device_(make_device(bundle, tape, limits_)),
        banks_(most_counters(bundle), bundle.header().n_workers),
        history_(limits_.slots, std::vector<uint32_t>(limits_.context, 0)),
        scheduler_(options.policy, options.seed) {
    for (const ProgramView& program : bundle.programs()) packets_.push_back(plan_packets(program));
  }

  Result<StepOutput> run(const StepInput& input) {
    if (broken_)
      return verification_error("an earlier step had findings: make a new machine, or reset this one");
    PLOW_TRY(StepColumns columns, make_columns(bundle_, limits_, input));
    for (size_t r = 0; r < columns.token_ids.size(); ++r) {
      history_[columns.row_slots[r]][columns.positions[r]] = columns.token_ids[r];
    }
    const ProgramView& program = bundle_.programs()[input.program];
    const StepPlan& plan = plan_of(input.program, {static_cast<uint32_t>(columns.token_ids.size()),
                                                   static_cast<uint32_t>(columns.sample_rows.size())});
    StepOutput output;
    for (uint32_t k = 0; k < input.n_steps && output.findings.empty(); ++k) {
      const StepContext context{program,
                                packets_[input.program],
                                plan,
                                bundle_.kv_groups(),
                                columns,
                                history_,
                                device_,
                                banks_,
                                ++epoch_,
                                previous_counters_,
                                options_.clear_distance,
                                options_.arithmetic,
                                k + 1 < input.n_steps};
      output.findings = run_step(context, scheduler_);
      output.sampled.push_back(columns.sampled);
      previous_counters_ = program.entry->n_counters;
    }
    broken_ = !output.findings.empty();
    if (options_.arithmetic && !broken_) output.logits = logits(program, plan.shape.n_samples);
    return output;
  }

  void reset(Policy policy, uint64_t seed) {
    scheduler_ = Scheduler(policy, seed);
    device_.arena.forget();
    for (Shadow& shadow : device_.kv) shadow.forget();
    device_.sampled.forget();
    device_.memory.poison_kv();
    banks_ = CounterBanks(banks_.n_counters(), bundle_.header().n_workers);
    epoch_ = previous_counters_ = 0;
    broken_ = false;
  }

  uint32_t table_width() const { return limits_.table_width; }

  void set_history(uint32_t slot, std::span<const uint32_t> tokens) {
    PLOW_CHECK(slot < limits_.slots && tokens.size() <= limits_.context, "slot {}, {} tokens", slot,
               tokens.size());
    std::copy(tokens.begin(), tokens.end(), history_[slot].begin());
  }

 private:
  // The same few shapes come again and again.
  const StepPlan& plan_of(uint32_t program, const StepShape& shape) {
    for (const auto& [of, plan] : plans_) {
      if (of == program && plan->shape == shape) return *plan;
    }
    plans_.emplace_back(program, std::make_unique<StepPlan>(
                                     plan_step(bundle_.programs()[program], packets_[program], shape)));
    return *plans_.back().second;
  }

  std::vector<float> logits(const ProgramView& program, uint32_t n_samples) const {
    std::vector<float> values;
    const auto sample =
        std::find_if(program.packets.begin(), program.packets.end(),
                     [](const Packet& packet) { return packet.body == static_cast<uint16_t>(Op::kSample); });
    if (sample == program.packets.end()) return values;
    const TensorEntry& tensor = program.tensors[sample->operand[0]];
    std::vector<double> row(tensor.cols);
    for (uint32_t s = 0; s < n_samples; ++s) {
      device_.memory.load(tensor, s, 0, tensor.cols, row.data());
      values.insert(values.end(), row.begin(), row.end());
    }
    return values;
  }

  const BundleFile& bundle_;
  MachineOptions options_;
  MachineLimits limits_;
  Device device_;
  CounterBanks banks_;
  std::vector<std::vector<uint32_t>> history_;  // [slot]: tokens by position
  Scheduler scheduler_;
  std::vector<std::vector<PacketPlan>> packets_;  // by program
  std::vector<std::pair<uint32_t, std::unique_ptr<StepPlan>>> plans_;
  uint32_t epoch_ = 0;
  uint32_t previous_counters_ = 0;
  bool broken_ = false;
};

Machine::Machine(std::unique_ptr<MachineState> state) : state_(std::move(state)) {}
Machine::Machine(Machine&&) noexcept = default;
Machine& Machine::operator=(Machine&&) noexcept = default;
Machine::~Machine() = default;

Result<Machine> Machine::create(const BundleFile& bundle, std::span<const std::byte> tape,
                                const MachineOptions& options) {
  const BundleHeader& header = bundle.header();
  if (tape.size() != header.tape_bytes) {
    return input_error(fmt::format("the tape has {} bytes, and the bundle was compiled for one of {}",
                                   tape.size(), header.tape_bytes));
  }
  if (options.slots == 0 || options.slots > header.max_slots || options.context > header.max_context) {
    return input_error(fmt::format("{} slots of {} positions; the bundle allows {} of {}", options.slots,
                                   options.context, header.max_slots, header.max_context));
  }
  return Machine(std::make_unique<MachineState>(bundle, tape, options));
}

Result<StepOutput> Machine::run(const StepInput& input) { return state_->run(input); }
void Machine::reset(Policy policy, uint64_t seed) { state_->reset(policy, seed); }
uint32_t Machine::table_width() const { return state_->table_width(); }
void Machine::set_history(uint32_t slot, std::span<const uint32_t> tokens) {
  state_->set_history(slot, tokens);
}

}  // namespace plow::reference
