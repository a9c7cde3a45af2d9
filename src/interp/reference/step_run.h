// One step of one program: the workers' lists, played in the order that a scheduler picks.
#pragma once

#include "interp/reference/access_check.h"
#include "interp/reference/clocks.h"
#include "interp/reference/scheduler.h"

#include <cstdint>
#include <vector>

namespace plow::reference {

// What a step needs to know and changes. Everything outlives the run.
struct StepContext {
  const ProgramView& program;
  const std::vector<PacketPlan>& packets;
  const StepPlan& plan;
  std::span<const KvGroup> kv_groups;
  StepColumns& step;
  std::vector<std::vector<uint32_t>>& history;  // [slot]: tokens by position
  Device& device;
  CounterBanks& banks;
  uint32_t epoch = 1;
  uint32_t previous_counters = 0;  // of the program of the step before
  uint32_t clear_distance = 1;     // MachineOptions
  bool arithmetic = true;
  bool another = false;  // of the K steps is to follow: `advance` sets it up
};

// Runs the whole step. Findings are what went wrong; a deadlock ends it early.
std::vector<Finding> run_step(const StepContext& context, Scheduler& scheduler);

}  // namespace plow::reference
