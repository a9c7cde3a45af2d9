// What a part can do, in the units that the cost model adds up. One row a part in parts.def; measured figures replace them where a tuner has run.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "abi/header.h"

namespace plow {

struct Part {
  std::string_view name;
  Isa isa;
  uint32_t n_workers;           // 0: as many as the machine has cores
  double read_bytes_per_ns;     // of one worker streaming from memory while all do
  double flops_per_ns;          // of one worker's matrix body
  double element_ns;            // of one element of a row-wise body
  double hop_ns;                // from a signal on one worker to the wait met on another
  double packet_ns;             // decode, wait check and signal of one packet
};

std::span<const Part> known_parts();

// Null when the name is not known.
const Part* find_part(std::string_view name);

// The first part of an ISA: what is assumed when none is named.
const Part& default_part(Isa isa);

}  // namespace plow
