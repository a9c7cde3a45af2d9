// Puts one fault into a valid bundle: what a broken compiler could have written. A checker that accepts
// everything would pass every test of valid bundles; this is what it is measured with.
#pragma once

#include "bundle/bundle.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace plow::reference {

enum class FaultKind : uint8_t {
#define PLOW_FAULT(Name, text) k##Name,
#include "interp/reference/faults.def"
};

struct FaultName {
  FaultKind kind;
  const char* name;
  const char* text;
};

// All kinds, in the order of faults.def.
std::span<const FaultName> fault_names();

struct SeededFault {
  uint32_t program = 0;
  std::string where;            // the packet or tensor, as disassemble() prints it before the fault
  uint32_t clear_distance = 1;  // for MachineOptions: faults of the protocol are none of the tables'
};

// Changes `tables` in one place that the seed picks. None when the bundle has no place for a fault of this
// kind. REQUIRES tables that serialise to a valid bundle.
std::optional<SeededFault> seed_fault(BundleTables& tables, FaultKind kind, uint64_t seed);

}  // namespace plow::reference
