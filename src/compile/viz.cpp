#include "compile/viz.h"

#include "base/check.h"
#include "compile/provenance.h"

#include <boost/json.hpp>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace plow {

extern const std::string_view kPageHtml, kPageCss,
    kPageJs;  // the files beside this one (plow_embed in cmake/)

namespace {

namespace json = boost::json;

// Operators get numbers as they are met.
class OpNumbers {
 public:
  int64_t number(Op op) {
    const auto [at, inserted] = numbers_.try_emplace(op, static_cast<int64_t>(names_.size()));
    if (inserted) names_.emplace_back(op_name(op));
    return at->second;
  }
  json::array take_names() { return std::move(names_); }

 private:
  std::map<Op, int64_t> numbers_;
  json::array names_;
};

// "gate_proj" of "model.layers.3.mlp.gate_proj.weight": what fits on a packet's rectangle.
std::string short_weight_name(std::string_view name) {
  for (const std::string_view suffix : {".weight", ".bias"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  const size_t dot = name.rfind('.');
  return std::string(dot == std::string_view::npos ? name : name.substr(dot + 1));
}

json::array nodes_json(const OpGraph& graph, OpNumbers& ops) {
  const std::vector<std::string> lines = node_lines(graph);
  json::array nodes;
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    std::string weight;
    for (const NodeId input : graph.inputs_of(NodeId(n))) {
      if (graph.node(input).op == Op::kWeight)
        weight = short_weight_name(graph.weights[graph.node(input).leaf].name);
    }
    nodes.push_back({{"op", ops.number(node.op)},
                     {"layer", node.layer == Node::kNoLayer ? int64_t{-1} : int64_t{node.layer}},
                     {"text", lines[n]},
                     {"weight", weight}});
  }
  return nodes;
}

const char* band_name(Band band) { return band == Band::kRow ? "row" : "one"; }

std::string rows_text(const TensorEntry& tensor) {
  return tensor.row_kind == Rows::kFixed ? std::to_string(tensor.rows) : rows_name(tensor.row_kind);
}

const char* space_text(Space space) {
  switch (space) {
    case Space::kTape:
      return "tape";
    case Space::kArena:
      return "arena";
    case Space::kKv:
      return "kv";
    case Space::kStep:
      return "step";
  }
  return "";
}

json::array tensors_json(const BundleFile& bundle, const ProgramView& program) {
  json::array tensors;
  for (const TensorEntry& tensor : program.tensors) {
    tensors.push_back({{"name", tensor_label(bundle, tensor)},
                       {"dtype", dtype_name(tensor.dtype)},
                       {"rows", rows_text(tensor)},
                       {"cols", tensor.cols},
                       {"space", space_text(tensor.space)},
                       {"bytes", tensor.bytes},
                       {"node", tensor.node}});
  }
  return tensors;
}

// Bytes of the tape that each packet consumes, from the stream lists. An entry names its packet modulo 65536,
// and entries are in the order of the packets, so the next packet with that remainder is the one.
std::vector<uint64_t> weight_bytes_by_packet(const ProgramView& program) {
  std::vector<uint64_t> bytes(program.packets.size());
  for (const WorkerEntry& worker : program.workers) {
    uint32_t packet = 0;
    for (const StreamEntry& entry : program.stream.subspan(worker.first_stream, worker.n_stream)) {
      while (packet < worker.n_packets && (packet & 0xffffu) != entry.packet) ++packet;
      if (packet == worker.n_packets) break;
      if (entry.kv == 0) bytes[worker.first_packet + packet] += entry.bytes;
    }
  }
  return bytes;
}

json::object packets_json(const ProgramView& program, const ProgramStages& stages, OpNumbers& ops) {
  const std::vector<uint64_t> weight_bytes = weight_bytes_by_packet(program);
  std::map<std::string, json::array, std::less<>> columns;
  const auto add = [&columns](std::string_view column, json::value value) {
    columns[std::string(column)].push_back(std::move(value));
  };
  for (uint32_t p = 0; p < program.packets.size(); ++p) {
    const Packet& packet = program.packets[p];
    const Task& task = stages.schedule.tasks[p];
    const NodeId node = node_of(stages, p);
    add("op", ops.number(static_cast<Op>(packet.body)));
    add("node", node.valid() ? int64_t{node.value} : int64_t{-1});
    add("worker", task.worker);
    add("start", task.start_ns);
    add("end", task.end_ns);
    add("col_first", packet.col_first);
    add("col_count", packet.col_count);
    add("col_stride", packet.col_stride);
    add("tile_cols", packet.tile_cols);
    add("row_first", packet.row_first);
    add("row_stride", packet.row_stride);
    add("first_wait", packet.wait_first);
    add("n_waits", packet.n_waits);
    add("first_signal", packet.signal_first);
    add("n_signals", packet.n_signals);
    add("weight_bytes", weight_bytes[p]);
    json::array operands;
    for (const uint16_t operand : packet.operand) {
      if (operand != kNoTensor) operands.push_back(operand);
    }
    add("operands", std::move(operands));
  }
  json::object packets;
  for (auto& [name, values] : columns) packets[name] = std::move(values);
  return packets;
}

// Waits that read the same counters share one list of signallers, since a counter that all wait for would
// repeat it for each.
void add_waits(const ProgramView& program, json::object& out) {
  const CounterIndex index(program);
  std::map<std::tuple<uint32_t, Band, uint32_t, uint32_t>, int64_t> numbers;
  json::array waits(program.waits.size()), lists;
  for (uint32_t p = 0; p < program.packets.size(); ++p) {
    const Packet& packet = program.packets[p];
    for (uint32_t w = packet.wait_first; w < packet.wait_first + packet.n_waits; ++w) {
      const Wait& wait = program.waits[w];
      const auto [at, inserted] = numbers.try_emplace(
          {wait.counter, wait.band, packet.row_first, packet.row_stride}, static_cast<int64_t>(lists.size()));
      if (inserted) {
        const std::vector<uint32_t> signallers = index.signallers(p, wait);
        lists.push_back(json::array(signallers.begin(), signallers.end()));
      }
      waits[w] = {{"counter", wait.counter},           {"band", band_name(wait.band)},
                  {"per_row_tile", wait.per_row_tile}, {"constant", wait.constant},
                  {"rows", rows_name(wait.rows)},      {"signallers", at->second}};
    }
  }
  out["waits"] = std::move(waits);
  out["signallers"] = std::move(lists);
}

// A buffer lives from the first packet that writes it to the end of the last that reads it, in the predicted
// step.
json::array buffers_json(const ProgramView& program, const Schedule& schedule) {
  std::map<uint32_t, std::pair<double, double>> lifetimes;  // by node
  for (uint32_t p = 0; p < program.packets.size(); ++p) {
    const Task& task = schedule.tasks[p];
    for (const uint16_t operand : program.packets[p].operand) {
      if (operand == kNoTensor || program.tensors[operand].space != Space::kArena) continue;
      const auto [at, inserted] =
          lifetimes.try_emplace(program.tensors[operand].node, std::pair(task.start_ns, task.end_ns));
      at->second.first = std::min(at->second.first, task.start_ns);
      at->second.second = std::max(at->second.second, task.end_ns);
    }
  }
  json::array buffers;
  for (const Buffer& buffer : schedule.buffers) {
    const auto [start, end] = lifetimes[buffer.node.value];
    buffers.push_back({{"node", buffer.node.value},
                       {"offset", buffer.offset},
                       {"bytes", buffer.bytes},
                       {"start", start},
                       {"end", end}});
  }
  return buffers;
}

json::object program_json(const BundleFile& bundle, const ProgramView& program, const ProgramStages& stages,
                          OpNumbers& ops) {
  const Schedule& schedule = stages.schedule;
  PLOW_CHECK(schedule.tasks.size() == program.packets.size(), "{} tasks, {} packets", schedule.tasks.size(),
             program.packets.size());
  double span = 1;  // never zero: the page divides by it
  for (const Task& task : schedule.tasks) span = std::max(span, task.end_ns);
  json::object out{{"max_rows", program.entry->max_rows},
                   {"predicted_ns", program.entry->predicted_ns},
                   {"span", span},
                   {"arena_bytes", program.entry->arena_bytes},
                   {"packets", packets_json(program, stages, ops)},
                   {"tensors", tensors_json(bundle, program)},
                   {"buffers", buffers_json(program, schedule)}};
  add_waits(program, out);
  json::array signals;
  for (const Signal& signal : program.signals) {
    signals.push_back({{"counter", signal.counter}, {"band", band_name(signal.band)}});
  }
  out["signals"] = std::move(signals);
  return out;
}

json::object model_json(const BundleHeader& header, const VizTitle& title) {
  return {
      {"name", title.name},          {"architecture", title.architecture}, {"isa", isa_name(header.isa)},
      {"workers", header.n_workers}, {"layers", header.n_layers},          {"hidden", header.hidden},
      {"vocab", header.vocab},       {"max_context", header.max_context},  {"max_slots", header.max_slots}};
}

json::array memory_json(const BundleFile& bundle) {
  const MemoryPlan plan = plan_memory(bundle, bundle.header().max_slots, bundle.header().max_context);
  return {{"weights", plan.weights},   {"KV cache", plan.kv}, {"activations", plan.arena},
          {"counters", plan.counters}, {"step", plan.step},   {"scratch", plan.scratch}};
}

// JSON inside a script element may not hold "</script" or "<!--": no '<' at all.
std::string without_angle_brackets(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

void substitute(std::string& text, std::string_view marker, std::string_view value) {
  const size_t at = text.find(marker);
  PLOW_CHECK(at != std::string::npos, "page.html has no {}", marker);
  text.replace(at, marker.size(), value);
}

}  // namespace

std::string viz_json(const BundleFile& bundle, const BundleStages& stages, const VizTitle& title) {
  OpNumbers ops;
  json::object out{{"model", model_json(bundle.header(), title)}, {"memory", memory_json(bundle)}};
  out["nodes"] = nodes_json(stages.graph, ops);
  json::array programs;
  for (size_t p = 0; p < bundle.programs().size(); ++p) {
    programs.push_back(program_json(bundle, bundle.programs()[p], stages.programs[p], ops));
  }
  out["programs"] = std::move(programs);
  out["ops"] = ops.take_names();
  return json::serialize(out);
}

std::string viz_page(const BundleFile& bundle, const BundleStages& stages, const VizTitle& title) {
  std::string page(kPageHtml);
  substitute(page, "@STYLE@", kPageCss);
  substitute(page, "@SCRIPT@", kPageJs);
  // Last, so that no name in the data can be taken for a marker.
  substitute(page, "@DATA@", without_angle_brackets(viz_json(bundle, stages, title)));
  return page;
}

}  // namespace plow
