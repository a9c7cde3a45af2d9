// A program as text for people: one line a tensor, one line a packet, in the order of the workers' lists.
#pragma once

#include "bundle/bundle.h"

#include <string>

namespace plow {

// "c12[r] >= 3R+1": r is the packet's row tile, R the row tiles of T (Rs: of S) in the step.
std::string format_wait(const Wait& wait);
// "c12[r]".
std::string format_signal(const Signal& signal);
// "t5:f32[T,64]".
std::string format_operand(const ProgramView& program, uint16_t operand);
// "p17 linear rows 0.. cols 0..3 (x16): t5:f32[T,64], t1:bf16[64,64] -> t6:f32[T,64]; waits c3[r] >= 4;
// signals c4[r]".
std::string format_packet(const ProgramView& program, uint32_t packet);

std::string disassemble(const ProgramView& program);

}  // namespace plow
