#include "compile/programs.h"

#include <algorithm>
#include <cstring>

#include "compile/pipeline.h"
#include "interp/packet_view.h"
#include "isa/gpu/geometry.h"
#include "packet/encode.h"

namespace plow {

namespace {

static_assert(kFewRows == dev::kStreamedRows, "bodies tell the programs apart");

// Rows of a row tile when there are many: enough that arithmetic, not the weights' way from L2, bounds a tile (64 rows are 64 flop a byte of bf16).
constexpr uint32_t kManyRowTile = 64;

}  // namespace

std::vector<TileOptions> program_shapes(Isa isa, uint32_t chunk_rows, uint32_t max_slots, const std::vector<TunedSetting>& settings) {
  uint32_t many_row_tile = kManyRowTile;
  std::vector<OpSetting> few_settings, many_settings;
  for (const TunedSetting& s : settings) {
    if (s.op == Op::kLeave) {
      if (s.many_rows && s.value != 0) many_row_tile = s.value;
    } else {
      (s.many_rows ? many_settings : few_settings).push_back({s.op, s.inputs, s.outputs, s.value, s.split});
    }
  }
  std::vector<TileOptions> programs(1);
  programs[0].shape = {kFewRows, kFewRows, kFewRows, kFewRows};
  programs[0].settings = std::move(few_settings);
  if (chunk_rows > kFewRows) {
    TileOptions many;
    many.shape = {chunk_rows, std::max(max_slots, kFewRows), std::min(chunk_rows, many_row_tile), kFewRows};
    if (many_row_tile > kFewRows && gpu::group_columns(isa) != 0) many.linear_cols = gpu::group_columns(isa);
    many.settings = std::move(many_settings);
    programs.push_back(std::move(many));
  }
  return programs;
}

void make_batch_invariant(const OpGraph& graph, std::vector<TunedSetting>& settings) {
  std::erase_if(settings, [](const TunedSetting& s) { return s.many_rows && s.op == Op::kLeave; });
  settings.push_back({true, Op::kLeave, graph.hidden, graph.vocab, kFewRows, Split::kAuto});
}

Result<std::vector<ProgramStages>> build_programs(const OpGraph& graph, uint32_t n_workers, uint32_t chunk_rows,
                                                  uint32_t max_slots, const Plan& plan) {
  const TapePlan tape = plan_tape(graph, plan.part.isa);
  const KvPlan kv = plan_kv(graph, plan.part.isa);
  std::vector<ProgramStages> programs;
  for (const TileOptions& options : program_shapes(plan.part.isa, chunk_rows, max_slots, plan.settings)) {
    ProgramStages stages;
    stages.tiles = tile_graph(graph, options);
    PLOW_TRY_STATUS(verify_tile_graph(graph, stages.tiles));
    stages.schedule = schedule_tiles(graph, stages.tiles, {n_workers, &plan.part});
    PLOW_TRY_STATUS(verify_schedule(graph, stages.tiles, stages.schedule));
    stages.tables = encode_program(graph, stages.tiles, stages.schedule, tape, kv);
    programs.push_back(std::move(stages));
  }
  return programs;
}

Result<Plan> plan_of(const BundleFile& bundle) {
  boost::system::error_code error;
  const boost::json::value record = boost::json::parse(bundle.build_record(), error);
  const boost::json::value* plan = !error && record.is_object() ? record.get_object().if_contains("plan") : nullptr;
  if (plan == nullptr) return default_plan(bundle.header().isa);
  if (!plan->is_object()) return input_error("the plan in the build record is not an object");
  return plan_from_json(plan->get_object());
}

namespace {

template <class T>
bool same_bytes(const std::vector<T>& ours, std::span<const T> theirs) {
  return ours.size() == theirs.size() && (ours.empty() || std::memcmp(ours.data(), theirs.data(), ours.size() * sizeof(T)) == 0);
}

}  // namespace

Result<BundleStages> derive_stages(const BundleFile& bundle) {
  BundleStages stages;
  PLOW_TRY(stages.graph, parse_graph(bundle.graph_text()));
  PLOW_TRY_STATUS(verify_graph(stages.graph));
  const uint32_t chunk_rows = bundle.programs().back().entry->max_rows;
  PLOW_TRY(const Plan plan, plan_of(bundle));
  PLOW_TRY(stages.programs,
           build_programs(stages.graph, bundle.header().n_workers, chunk_rows, bundle.header().max_slots, plan));
  if (stages.programs.size() != bundle.programs().size()) {
    return verification_error("the bundle holds another number of programs than its graph gives");
  }
  for (size_t p = 0; p < stages.programs.size(); ++p) {
    const ProgramTables& ours = stages.programs[p].tables;
    const ProgramView& theirs = bundle.programs()[p];
    if (!same_bytes(ours.packets, theirs.packets) || !same_bytes(ours.waits, theirs.waits) ||
        !same_bytes(ours.signals, theirs.signals) || !same_bytes(ours.tensors, theirs.tensors)) {
      return verification_error(fmt::format(
          "program {} of the bundle differs from what its graph gives; it was made by another version of plowc: compile it again", p));
    }
  }
  return stages;
}

}  // namespace plow
