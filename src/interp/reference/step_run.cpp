#include "interp/reference/step_run.h"

#include "bundle/disassemble.h"
#include "interp/reference/bodies.h"
#include "interp/reference/describe.h"

#include <fmt/format.h>

#include <algorithm>

namespace plow::reference {
namespace {

// More than these say nothing new of a broken schedule.
constexpr size_t kMostFindings = 16;

class StepRun {
 public:
  explicit StepRun(const StepContext& context)
      : context_(context),
        access_(context.program, context.packets, context.plan, context.step, context.history, context.device,
                findings_),
        done_(context.plan.instances.size(), 0),
        clocks_(context.plan.instances.size(), Clock(context.plan.instances.size(), 0)) {}

  std::vector<Finding> run(Scheduler& scheduler) {
    begin();
    std::vector<uint32_t> runnable;
    while (findings_.size() < kMostFindings) {
      runnable.clear();
      for (uint32_t w = 0; w < done_.size(); ++w) {
        if (can_run(w)) runnable.push_back(w);
      }
      if (runnable.empty()) break;
      execute(scheduler.pick(runnable, done_));
    }
    end();
    return std::move(findings_);
  }

 private:
  bool finished(uint32_t worker) const { return done_[worker] == context_.plan.instances[worker].size(); }
  const Packet& packet_of(const Instance& instance) const {
    return context_.program.packets[instance.packet];
  }
  std::span<const Wait> waits_of(const Packet& packet) const {
    return context_.program.waits.subspan(packet.wait_first, packet.n_waits);
  }
  std::string describe(const Instance& instance) const {
    return describe_instance(context_.program, context_.packets, instance);
  }

  // A wait without a band that was met for the first row tile of a packet holds for all (abi/packet.h).
  bool applies(const Wait& wait, const Packet& packet, const Instance& instance) const {
    return wait.band == Band::kRow || instance.row_tile == packet.row_first;
  }
  uint64_t threshold(const Wait& wait) const {
    return threshold_of(*context_.program.entry, context_.plan.shape, wait);
  }

  const Wait* unmet_wait(const Instance& instance) const {
    const Packet& packet = packet_of(instance);
    for (const Wait& wait : waits_of(packet)) {
      const uint32_t counter = counter_of(wait.counter, wait.band, instance.row_tile);
      if (applies(wait, packet, instance) && !context_.banks.met(counter, threshold(wait))) return &wait;
    }
    return nullptr;
  }

  bool can_run(uint32_t worker) const {
    return !finished(worker) && unmet_wait(context_.plan.instances[worker][done_[worker]]) == nullptr;
  }

  void begin() {
    context_.banks.begin_step(context_.epoch);
    context_.device.arena.begin_step();
    for (Shadow& shadow : context_.device.kv) shadow.begin_step();
    context_.device.sampled.begin_step();
    if (context_.arithmetic) context_.device.memory.poison_arena();
    const uint32_t bank = context_.banks.bank();
    for (uint32_t c = 0; c < context_.banks.n_counters(); ++c) {
      if (context_.banks.value(bank, c) == 0) continue;
      add(FindingKind::kCounter, Finding::kNoPacket, 0,
          fmt::format("step {} begins with {} in counter c{} of bank {}: nobody cleared the bank",
                      context_.epoch, context_.banks.value(bank, c), c, bank));
      break;
    }
  }

  // Of more signals than a wait waits for it is not certain which it has seen; fewer are a deadlock.
  void check_threshold(const Instance& instance, const Wait& wait) {
    const uint32_t counter = counter_of(wait.counter, wait.band, instance.row_tile);
    if (threshold(wait) == context_.plan.promised[counter]) return;
    add(FindingKind::kCounter, instance.packet, context_.packets[instance.packet].worker,
        fmt::format("{} waits for c{} >= {}, and {} signals are promised", describe(instance), counter,
                    threshold(wait), context_.plan.promised[counter]));
  }

  void execute(uint32_t worker) {
    const Instance instance = context_.plan.instances[worker][done_[worker]];
    const Packet& packet = packet_of(instance);
    Clock& clock = clocks_[worker];
    for (const Wait& wait : waits_of(packet)) {
      if (!applies(wait, packet, instance)) continue;
      check_threshold(instance, wait);
      context_.banks.acquire(counter_of(wait.counter, wait.band, instance.row_tile), clock);
    }
    clock[worker] = ++done_[worker];
    switch (static_cast<Op>(packet.body)) {
      case Op::kLeave:
        break;
      case Op::kClearBank:
        clear_bank();
        break;
      case Op::kAdvance:
        advance(instance, worker);
        break;
      default:
        run_tile(instance, worker);
    }
    for (const Signal& signal : context_.program.signals.subspan(packet.signal_first, packet.n_signals)) {
      context_.banks.signal(counter_of(signal.counter, signal.band, instance.row_tile), clock);
    }
  }

  void run_tile(const Instance& instance, uint32_t worker) {
    access_.check(instance, {worker, done_[worker], clocks_[worker]});
    if (!context_.arithmetic) return;
    const Packet& packet = packet_of(instance);
    const auto kind = static_cast<Rows>(packet.row_kind);
    const uint32_t rows = row_tile_rows(*context_.program.entry, kind);
    const uint32_t begin = instance.row_tile * rows;
    const PacketPlan& plan = context_.packets[instance.packet];
    for (const TileRun& run : plan.runs) {
      run_body({&context_.program, &packet, &run, plan.n_inputs, begin,
                std::min(begin + rows, rows_of_kind(context_.plan.shape, kind)), &context_.device.memory,
                &context_.step, &context_.history},
               context_.kv_groups);
    }
  }

  void clear_bank() {
    context_.banks.clear((context_.epoch + kCounterBanks - context_.clear_distance) % kCounterBanks,
                         context_.previous_counters);
  }

  // Must come after everything else of the step: the other workers begin the next one when they see it done.
  void advance(const Instance& instance, uint32_t worker) {
    if (++advances_ > 1) {
      add(FindingKind::kEndOfStep, instance.packet, worker,
          describe(instance) + " ends the step a second time");
      return;
    }
    for (uint32_t w = 0; w < done_.size(); ++w) {
      const auto& list = context_.plan.instances[w];
      if (clocks_[worker][w] >= list.size()) continue;
      add(FindingKind::kEndOfStep, instance.packet, worker,
          fmt::format("{} ends the step, and no wait puts {} before it", describe(instance),
                      describe(list[clocks_[worker][w]])));
    }
    access_.check_sampled(instance, {worker, done_[worker], clocks_[worker]});
    if (context_.another) feed_back();
  }

  // REQUIRES what step.h does for several steps: row s is sample s of a slot of its own.
  void feed_back() {
    StepColumns& step = context_.step;
    for (uint32_t s = 0; s < step.sample_rows.size(); ++s) {
      const uint32_t row = step.sample_rows[s];
      const uint32_t position = ++step.positions[row];
      step.span_first[row] = position;
      step.token_ids[row] = step.sampled[s].token;
      context_.history[step.row_slots[row]][position] = step.sampled[s].token;
    }
  }

  void end() {
    if (findings_.size() >= kMostFindings) return;
    report_deadlock();
    if (!findings_.empty()) return;  // what follows from them would only hide them
    access_.check_outputs_written();
    if (advances_ == 0)
      add(FindingKind::kEndOfStep, Finding::kNoPacket, 0, "no packet ends the step: advance is missing");
    for (uint32_t c = 0; c < context_.program.entry->n_counters; ++c) check_final_counter(c);
    check_cleared();
  }

  void check_final_counter(uint32_t counter) {
    const uint32_t value = context_.banks.value(context_.banks.bank(), counter);
    const uint32_t promised = context_.plan.promised[counter];
    if (value == promised) return;
    add(FindingKind::kCounter, Finding::kNoPacket, 0,
        fmt::format("counter c{} ends the step at {}, and {} signals are promised", counter, value,
                    promised));
  }

  void check_cleared() {
    const uint32_t bank = (context_.epoch + kCounterBanks - 1) % kCounterBanks;
    for (uint32_t c = 0; c < context_.banks.n_counters(); ++c) {
      if (context_.banks.value(bank, c) == 0) continue;
      add(FindingKind::kCounter, Finding::kNoPacket, 0,
          fmt::format("counter c{} of bank {}, of the step before, still has {} at the end of step {}: no "
                      "packet cleared it",
                      c, bank, context_.banks.value(bank, c), context_.epoch));
      return;
    }
  }

  void report_deadlock() {
    std::string who;
    uint32_t first_worker = 0, first_packet = Finding::kNoPacket;
    for (uint32_t w = 0; w < done_.size(); ++w) {
      if (finished(w)) continue;
      const Instance& instance = context_.plan.instances[w][done_[w]];
      const Wait* wait = unmet_wait(instance);
      const uint32_t counter = counter_of(wait->counter, wait->band, instance.row_tile);
      who +=
          fmt::format("{}{} waits for c{} >= {}, sees {} of {} promised", who.empty() ? "" : "; ",
                      describe(instance), counter, threshold(*wait),
                      context_.banks.value(context_.banks.bank(), counter), context_.plan.promised[counter]);
      if (first_packet == Finding::kNoPacket) first_worker = w, first_packet = instance.packet;
    }
    if (!who.empty()) add(FindingKind::kDeadlock, first_packet, first_worker, "no worker can go on: " + who);
  }

  void add(FindingKind kind, uint32_t packet, uint32_t worker, std::string text) {
    findings_.push_back({kind, packet, worker, std::move(text)});
  }

  const StepContext& context_;
  std::vector<Finding> findings_;
  AccessCheck access_;
  std::vector<uint32_t> done_;  // by worker: instances run
  std::vector<Clock> clocks_;   // by worker
  uint32_t advances_ = 0;
};

}  // namespace

std::vector<Finding> run_step(const StepContext& context, Scheduler& scheduler) {
  return StepRun(context).run(scheduler);
}

}  // namespace plow::reference
