#include "compile/provenance.h"

#include "base/check.h"
#include "base/text_table.h"
#include "bundle/disassemble.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace plow {

namespace {

uint32_t tiles_of(uint32_t rows, uint32_t row_tile) { return (rows + row_tile - 1) / row_tile; }

// The most row tiles that a packet runs over, in any step of the program.
uint32_t max_row_tiles(const ProgramView& program, const Packet& packet) {
  switch (static_cast<Rows>(packet.row_kind)) {
    case Rows::kTokens:
      return tiles_of(program.entry->max_rows, program.entry->token_row_tile);
    case Rows::kSamples:
      return tiles_of(program.entry->max_samples, program.entry->sample_row_tile);
    case Rows::kFixed:
      break;
  }
  return 1;
}

std::vector<uint32_t> gather(const std::vector<std::vector<uint32_t>>& by_counter,
                             const std::vector<uint32_t>& counters) {
  std::vector<uint32_t> packets;
  for (const uint32_t counter : counters) {
    packets.insert(packets.end(), by_counter[counter].begin(), by_counter[counter].end());
  }
  std::sort(packets.begin(), packets.end());
  packets.erase(std::unique(packets.begin(), packets.end()), packets.end());
  return packets;
}

std::string packet_label(const ProgramView& program, uint32_t program_index, uint32_t packet) {
  return fmt::format("{}:{} {} (worker {})", program_index, packet,
                     op_name(static_cast<Op>(program.packets[packet].body)), worker_of(program, packet));
}

std::string packet_list(const ProgramView& program, uint32_t program_index,
                        const std::vector<uint32_t>& packets) {
  constexpr size_t kShown = 8;  // a counter that all workers signal would fill the screen
  if (packets.empty()) return "nobody";
  std::string text;
  for (size_t i = 0; i < std::min(packets.size(), kShown); ++i) {
    text += (i > 0 ? ", " : "") + packet_label(program, program_index, packets[i]);
  }
  if (packets.size() > kShown) text += fmt::format(" and {} more", packets.size() - kShown);
  return text;
}

std::string_view space_name(Space space) {
  switch (space) {
    case Space::kTape:
      return "tape";
    case Space::kArena:
      return "arena";
    case Space::kKv:
      return "KV block";
    case Space::kStep:
      return "step";
  }
  return "?";
}

std::string describe_operand(const BundleFile& bundle, const ProgramView& program, uint16_t operand) {
  const TensorEntry& tensor = program.tensors[operand];
  std::string text = fmt::format("{} ({})", tensor_label(bundle, tensor), format_operand(program, operand));
  if (tensor.space != Space::kStep) {
    text += fmt::format(", {} bytes at {} + {}", tensor.bytes, space_name(tensor.space), tensor.offset);
  }
  return text;
}

std::string describe_tiles(const Packet& packet) {
  const uint32_t last = packet.col_first + (packet.col_count - 1u) * packet.col_stride;
  std::string text =
      packet.col_count == 1
          ? fmt::format("column tile {} of {} columns", packet.col_first, packet.tile_cols)
          : fmt::format("column tiles {} to {} of {} columns", packet.col_first, last, packet.tile_cols);
  if (packet.col_count > 1 && packet.col_stride > 1)
    text += fmt::format(" in steps of {}", packet.col_stride);
  if (packet.row_first == 0 && packet.row_stride == 1) return text + ", all row tiles";
  return text +
         fmt::format(", row tiles {}, {}, ...", packet.row_first, packet.row_first + packet.row_stride);
}

}  // namespace

CounterIndex::CounterIndex(const ProgramView& program)
    : program_(&program), signalling_(program.entry->n_counters), waiting_(program.entry->n_counters) {
  for (uint32_t p = 0; p < program.packets.size(); ++p) {
    const Packet& packet = program.packets[p];
    for (const Signal& signal : program.signals.subspan(packet.signal_first, packet.n_signals)) {
      for (const uint32_t c : counters_of(p, signal.counter, signal.band)) signalling_[c].push_back(p);
    }
    for (const Wait& wait : program.waits.subspan(packet.wait_first, packet.n_waits)) {
      for (const uint32_t c : counters_of(p, wait.counter, wait.band)) waiting_[c].push_back(p);
    }
  }
}

// The counters that a wait or signal of the packet can mean: one, or one for each row tile that the packet
// may run.
std::vector<uint32_t> CounterIndex::counters_of(uint32_t packet, uint32_t counter, Band band) const {
  if (band != Band::kRow) return {counter};
  const Packet& p = program_->packets[packet];
  std::vector<uint32_t> counters;
  for (uint32_t r = p.row_first; r < max_row_tiles(*program_, p); r += p.row_stride)
    counters.push_back(counter + r);
  return counters;
}

std::vector<uint32_t> CounterIndex::signallers(uint32_t packet, const Wait& wait) const {
  return gather(signalling_, counters_of(packet, wait.counter, wait.band));
}

std::vector<uint32_t> CounterIndex::waiters(uint32_t packet, const Signal& signal) const {
  return gather(waiting_, counters_of(packet, signal.counter, signal.band));
}

uint32_t worker_of(const ProgramView& program, uint32_t packet) {
  PLOW_CHECK(packet < program.packets.size(), "packet {} of {}", packet, program.packets.size());
  const auto after =
      std::upper_bound(program.workers.begin(), program.workers.end(), packet,
                       [](uint32_t p, const WorkerEntry& worker) { return p < worker.first_packet; });
  return static_cast<uint32_t>(after - program.workers.begin()) - 1;
}

NodeId node_of(const ProgramStages& stages, uint32_t packet) {
  const TileOpId op = stages.schedule.tasks[packet].op;
  return op.valid() ? stages.tiles.ops[op.value].from : NodeId();
}

std::string tensor_label(const BundleFile& bundle, const TensorEntry& tensor) {
  constexpr std::array<const char*, 5> kColumns = {"token_ids", "positions", "row_slots", "sample_rows",
                                                   "sampled"};
  if (tensor.space == Space::kStep && tensor.offset < kColumns.size()) return kColumns[tensor.offset];
  if (tensor.source != kNoSource) return std::string(bundle.source_name(bundle.sources()[tensor.source]));
  return fmt::format("{}%{}", tensor.space == Space::kKv ? "cache " : "", tensor.node);
}

std::vector<std::string> node_lines(const OpGraph& graph) {
  std::vector<std::string> lines(graph.nodes.size());
  const std::string text = print_graph(graph);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    const size_t percent = line.find_first_not_of(' ');
    uint32_t node = 0;
    if (percent != std::string_view::npos && line[percent] == '%' &&
        std::from_chars(line.data() + percent + 1, line.data() + line.size(), node).ec == std::errc{} &&
        node < lines.size()) {
      lines[node] = line.substr(percent);
    }
    begin = end + 1;
  }
  return lines;
}

std::string explain_packet(const BundleFile& bundle, const BundleStages& stages, uint32_t program_index,
                           uint32_t packet_index) {
  const ProgramView& program = bundle.programs()[program_index];
  const Packet& packet = program.packets[packet_index];
  const uint32_t worker = worker_of(program, packet_index);
  const auto& list = program.workers[worker];
  const Schedule& schedule = stages.programs[program_index].schedule;
  const CounterIndex index(program);

  std::string text =
      fmt::format("packet {}:{}: {}\n", program_index, packet_index, op_name(static_cast<Op>(packet.body)));
  const auto add = [&text](std::string_view what, std::string_view value) {
    text += fmt::format("  {:<10} {}\n", what, value);
  };
  add("worker",
      fmt::format("{}, {} of {} in its list", worker, packet_index - list.first_packet + 1, list.n_packets));
  const Task& task = schedule.tasks[packet_index];
  add("predicted", fmt::format("{} to {} of a step of {}", format_ns(task.start_ns), format_ns(task.end_ns),
                               format_ns(schedule.predicted_ns)));
  const NodeId node = node_of(stages.programs[program_index], packet_index);
  if (node.valid()) {
    add("tiles", describe_tiles(packet));
    add("operator", node_lines(stages.graph)[node.value]);
    std::vector<uint16_t> operands;
    for (const uint16_t operand : packet.operand) {
      if (operand != kNoTensor) operands.push_back(operand);
    }
    for (const uint16_t operand : operands) {
      add(operand == operands.back() ? "writes" : "reads", describe_operand(bundle, program, operand));
    }
  }
  for (const Wait& wait : program.waits.subspan(packet.wait_first, packet.n_waits)) {
    add("waits for", fmt::format("{}, signalled by {}", format_wait(wait),
                                 packet_list(program, program_index, index.signallers(packet_index, wait))));
  }
  if (packet.n_waits == 0) add("waits for", "nothing");
  for (const Signal& signal : program.signals.subspan(packet.signal_first, packet.n_signals)) {
    add("signals", fmt::format("{}, waited for by {}", format_signal(signal),
                               packet_list(program, program_index, index.waiters(packet_index, signal))));
  }
  if (packet.n_signals == 0) add("signals", "nobody: those who read its output follow on the same worker");
  return text;
}

}  // namespace plow
