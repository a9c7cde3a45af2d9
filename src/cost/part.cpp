#include "cost/part.h"

#include <array>

#include "base/check.h"

namespace plow {

namespace {

constexpr Part kParts[] = {
#define PLOW_PART(name, isa, workers, read, flops, element, hop, packet) \
  Part{name, Isa::isa, workers, read, flops, element, hop, packet},
#include "cost/parts.def"
};

}  // namespace

std::span<const Part> known_parts() { return kParts; }

const Part* find_part(std::string_view name) {
  for (const Part& part : kParts) {
    if (part.name == name) return &part;
  }
  return nullptr;
}

const Part& default_part(Isa isa) {
  for (const Part& part : kParts) {
    if (part.isa == isa) return part;
  }
  PLOW_CHECK(false, "no part for ISA {}", isa_name(isa));
  __builtin_unreachable();
}

}  // namespace plow
