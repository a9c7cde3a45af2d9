#include "interp/reference/step_plan.h"

#include "ops/tile_rule.h"

#include <algorithm>

namespace plow::reference {
namespace {

std::vector<TileRun> tile_runs(const ProgramView& program, const Packet& packet) {
  std::vector<TileRun> runs;
  const std::vector<OperandShape> shapes = operand_shapes(program, packet);
  const OpInstance instance = op_instance(packet, shapes);
  const uint32_t tiles_a_run = packet.col_stride == 1 ? packet.col_count : 1;
  for (uint32_t i = 0; i < packet.col_count; i += tiles_a_run) {
    TileRun run;
    run.col_begin = (packet.col_first + i * packet.col_stride) * packet.tile_cols;
    run.col_end = std::min(run.col_begin + tiles_a_run * packet.tile_cols, instance.output().cols);
    tile_rule(instance.op)->footprint(instance, run.col_begin, run.col_end, run.accesses);
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace

std::vector<PacketPlan> plan_packets(const ProgramView& program) {
  std::vector<PacketPlan> plans(program.packets.size());
  for (uint32_t w = 0; w < program.workers.size(); ++w) {
    const WorkerEntry& worker = program.workers[w];
    for (uint32_t p = worker.first_packet; p < worker.first_packet + worker.n_packets; ++p) {
      const Packet& packet = program.packets[p];
      plans[p].worker = w;
      if (is_protocol(static_cast<Op>(packet.body))) continue;
      plans[p].n_inputs = tile_rule(static_cast<Op>(packet.body))->n_operands - 1;
      plans[p].runs = tile_runs(program, packet);
    }
  }
  return plans;
}

uint32_t rows_of_kind(const StepShape& shape, Rows rows) {
  switch (rows) {
    case Rows::kFixed:
      return 1;
    case Rows::kTokens:
      return shape.n_rows;
    case Rows::kSamples:
      return shape.n_samples;
  }
  return 0;
}

uint32_t row_tile_rows(const ProgramEntry& entry, Rows rows) {
  switch (rows) {
    case Rows::kFixed:
      return 1;
    case Rows::kTokens:
      return entry.token_row_tile;
    case Rows::kSamples:
      return entry.sample_row_tile;
  }
  return 1;
}

uint32_t row_tiles(const ProgramEntry& entry, const StepShape& shape, Rows rows) {
  const uint64_t tile = row_tile_rows(entry, rows);
  return static_cast<uint32_t>((rows_of_kind(shape, rows) + tile - 1) / tile);
}

uint32_t counter_of(uint32_t counter, Band band, uint32_t row_tile) {
  return band == Band::kRow ? counter + row_tile : counter;
}

uint64_t threshold_of(const ProgramEntry& entry, const StepShape& shape, const Wait& wait) {
  return uint64_t{wait.per_row_tile} * row_tiles(entry, shape, wait.rows) + wait.constant;
}

StepPlan plan_step(const ProgramView& program, const std::vector<PacketPlan>& packets,
                   const StepShape& shape) {
  const ProgramEntry& entry = *program.entry;
  StepPlan plan;
  plan.shape = shape;
  plan.instances.resize(program.workers.size());
  plan.promised.assign(entry.n_counters, 0);
  for (uint32_t p = 0; p < packets.size(); ++p) {
    const Packet& packet = program.packets[p];
    const uint32_t tiles = row_tiles(entry, shape, static_cast<Rows>(packet.row_kind));
    for (uint32_t r = packet.row_first; r < tiles; r += packet.row_stride) {
      plan.instances[packets[p].worker].push_back({p, r});
      for (const Signal& signal : program.signals.subspan(packet.signal_first, packet.n_signals)) {
        ++plan.promised[counter_of(signal.counter, signal.band, r)];
      }
    }
  }
  return plan;
}

}  // namespace plow::reference
