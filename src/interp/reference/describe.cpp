#include "interp/reference/describe.h"

#include "bundle/disassemble.h"

#include <fmt/format.h>

namespace plow::reference {

std::string describe_instance(const ProgramView& program, const std::vector<PacketPlan>& packets,
                              const Instance& instance) {
  return fmt::format("p{} {} (worker {}, row tile {})", instance.packet,
                     op_name(static_cast<Op>(program.packets[instance.packet].body)),
                     packets[instance.packet].worker, instance.row_tile);
}

std::string describe_element(const ProgramView& program, uint16_t tensor, uint32_t row, uint32_t column) {
  return fmt::format("{} row {} column {}", format_operand(program, tensor), row, column);
}

std::string describe_cell(const ProgramView& program, uint16_t tensor, uint32_t slot, uint32_t position,
                          uint32_t column) {
  return fmt::format("{} position {} of slot {}, column {}", format_operand(program, tensor), position, slot,
                     column);
}

const Packet* packet_that_writes(const ProgramView& program, uint16_t tensor, uint32_t row, uint32_t column) {
  for (const Packet& packet : program.packets) {
    const Op op = static_cast<Op>(packet.body);
    if (is_protocol(op) || packet.operand[tile_rule(op)->n_operands - 1] != tensor) continue;
    const uint32_t tile = column / packet.tile_cols;
    const uint32_t row_tile = row / row_tile_rows(*program.entry, static_cast<Rows>(packet.row_kind));
    const bool in_columns =
        tile >= packet.col_first &&
        (packet.col_count == 1 ? tile == packet.col_first
                               : (tile - packet.col_first) % packet.col_stride == 0 &&
                                     (tile - packet.col_first) / packet.col_stride < packet.col_count);
    const bool in_rows =
        row_tile >= packet.row_first && (row_tile - packet.row_first) % packet.row_stride == 0;
    if (in_columns && in_rows) return &packet;
  }
  return nullptr;
}

}  // namespace plow::reference
