// The last stage before bytes: a schedule's tasks become packets, its buffers and the graph's leaves a tensor table. A pure function of its arguments.
#pragma once

#include "bundle/bundle.h"
#include "graph/graph.h"
#include "packet/kv_plan.h"
#include "packet/tape.h"
#include "schedule/schedule.h"
#include "tile/tile_graph.h"

namespace plow {

ProgramTables encode_program(const OpGraph& graph, const TileGraph& tiles, const Schedule& schedule, const TapePlan& tape, const KvPlan& kv);

}  // namespace plow
