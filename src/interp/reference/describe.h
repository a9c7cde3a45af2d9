// Sentences for findings.
#pragma once

#include "bundle/bundle.h"
#include "interp/reference/step_plan.h"

#include <cstdint>
#include <string>

namespace plow::reference {

// "p14 linear (worker 1, row tile 0)".
std::string describe_instance(const ProgramView& program, const std::vector<PacketPlan>& packets,
                              const Instance& instance);

// "t5:f32[T,64] row 3 column 16"; of the cache: "t9:bf16[1,32] position 4 of slot 0, column 16".
std::string describe_element(const ProgramView& program, uint16_t tensor, uint32_t row, uint32_t column);
std::string describe_cell(const ProgramView& program, uint16_t tensor, uint32_t slot, uint32_t position,
                          uint32_t column);

// The packet that makes an element of a tensor in a step, by its output columns and row tiles; null when none
// does.
const Packet* packet_that_writes(const ProgramView& program, uint16_t tensor, uint32_t row, uint32_t column);

}  // namespace plow::reference
