#include "bundle/disassemble.h"

#include "abi/step.h"

#include <fmt/format.h>

namespace plow {
namespace {

std::string format_rows(Rows rows, uint32_t count) {
  return rows == Rows::kFixed ? fmt::format("{}", count) : std::string(rows_name(rows));
}

std::string format_place(const TensorEntry& tensor) {
  switch (tensor.space) {
    case Space::kTape:
      return fmt::format("tape+{:#x}", tensor.offset);
    case Space::kArena:
      return fmt::format("arena+{:#x}", tensor.offset);
    case Space::kKv:
      return fmt::format("kv{}+{:#x}", tensor.kv_group, tensor.offset);
    case Space::kStep:
      return fmt::format("step.{}", step_column_name(static_cast<StepColumn>(tensor.offset)));
  }
  return "?";
}

const char* layout_name(Layout layout) {
  switch (layout) {
    case Layout::kRowMajor:
      return "row-major";
    case Layout::kRows16Pairs:
      return "rows16-pairs";
    case Layout::kKvBlocks:
      return "kv-blocks";
    case Layout::kAtoms8x128:
      return "atoms8x128";
    case Layout::kKvRows:
      return "kv-rows";
    case Layout::kRows16Blocks:
      return "rows16-blocks";
  }
  return "?";
}

std::string format_tensor(const ProgramView& program, uint32_t index) {
  const TensorEntry& tensor = program.tensors[index];
  return fmt::format("{:<22} {:<18} {:>10} bytes  {} stride {} node {}\n",
                     format_operand(program, static_cast<uint16_t>(index)), format_place(tensor),
                     tensor.bytes, layout_name(tensor.layout), tensor.row_stride, tensor.node);
}

std::string format_tiles(const Packet& packet) {
  std::string text = fmt::format(" rows {}..", packet.row_first);
  if (packet.row_stride != 1) text += fmt::format(" by {}", packet.row_stride);
  text += fmt::format(" cols {}", packet.col_first);
  if (packet.col_count > 1)
    text += fmt::format("..{}", packet.col_first + (packet.col_count - 1u) * packet.col_stride);
  if (packet.col_count > 1 && packet.col_stride != 1) text += fmt::format(" by {}", packet.col_stride);
  return text + fmt::format(" (x{})", packet.tile_cols);
}

std::string format_operands(const ProgramView& program, const Packet& packet) {
  uint32_t count = 0;
  while (count < kPacketOperands && packet.operand[count] != kNoTensor) ++count;
  std::string text;
  for (uint32_t i = 0; i < count; ++i) {
    text += i == 0 ? ": " : i + 1 == count ? " -> " : ", ";
    text += format_operand(program, packet.operand[i]);
  }
  return text;
}

std::string format_immediates(const Packet& packet) {
  uint32_t count = kPacketImmediates;
  while (count > 0 && packet.immediate[count - 1] == 0) --count;
  std::string text = count == 0 ? "" : "; immediates";
  for (uint32_t i = 0; i < count; ++i) text += fmt::format(" {:#x}", packet.immediate[i]);
  return text;
}

}  // namespace

std::string format_wait(const Wait& wait) {
  std::string text = fmt::format("c{}{} >= ", wait.counter, wait.band == Band::kRow ? "[r]" : "");
  if (wait.per_row_tile == 0) return text + fmt::format("{}", wait.constant);
  if (wait.rows == Rows::kFixed) return text + fmt::format("{}", uint64_t{wait.per_row_tile} + wait.constant);
  text += fmt::format("{}{}", wait.per_row_tile, wait.rows == Rows::kTokens ? "R" : "Rs");
  return wait.constant == 0 ? text : text + fmt::format("+{}", wait.constant);
}

std::string format_signal(const Signal& signal) {
  return fmt::format("c{}{}{}", signal.counter, signal.band == Band::kRow ? "[r]" : "",
                     signal.scope == 1 ? " (peers too)" : "");
}

std::string format_operand(const ProgramView& program, uint16_t operand) {
  const TensorEntry& tensor = program.tensors[operand];
  return fmt::format("t{}:{}[{},{}]", operand, dtype_name(tensor.dtype),
                     format_rows(tensor.row_kind, tensor.rows), tensor.cols);
}

std::string format_packet(const ProgramView& program, uint32_t index) {
  const Packet& packet = program.packets[index];
  const Op op = static_cast<Op>(packet.body);
  std::string text = fmt::format("p{} {}", index, op_name(op));
  if (!is_protocol(op))
    text += format_tiles(packet) + format_operands(program, packet) + format_immediates(packet);
  for (uint32_t i = 0; i < packet.n_waits; ++i) {
    text += (i == 0 ? "; waits " : ", ") + format_wait(program.waits[packet.wait_first + i]);
  }
  for (uint32_t i = 0; i < packet.n_signals; ++i) {
    text += (i == 0 ? "; signals " : ", ") + format_signal(program.signals[packet.signal_first + i]);
  }
  return text;
}

std::string disassemble(const ProgramView& program) {
  const ProgramEntry& entry = *program.entry;
  std::string text = fmt::format(
      "program: up to {} rows (tiles of {}) and {} samples (tiles of {}), {} packets on {} workers, {} "
      "counters, arena of {} bytes\n",
      entry.max_rows, entry.token_row_tile, entry.max_samples, entry.sample_row_tile, program.packets.size(),
      program.workers.size(), entry.n_counters, entry.arena_bytes);
  for (uint32_t t = 0; t < program.tensors.size(); ++t) text += format_tensor(program, t);
  for (uint32_t w = 0; w < program.workers.size(); ++w) {
    const WorkerEntry& worker = program.workers[w];
    text += fmt::format("worker {}: {} packets, {} stream entries\n", w, worker.n_packets, worker.n_stream);
    for (uint32_t p = 0; p < worker.n_packets; ++p)
      text += "  " + format_packet(program, worker.first_packet + p) + "\n";
  }
  return text;
}

}  // namespace plow
