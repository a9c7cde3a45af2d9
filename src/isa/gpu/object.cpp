#include "isa/gpu/object.h"

#include "isa/gpu/carried.h"
#include "isa/gpu/geometry.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <vector>

namespace plow::gpu {

// Of object_data.cpp.in.
#define PLOW_GPU_ISA(Name, geometry) std::span<const std::byte> object_##Name();
PLOW_GPU_ISAS(PLOW_GPU_ISA)
#undef PLOW_GPU_ISA

namespace {

#define PLOW_CARRIED(name, value) {name, static_cast<uint32_t>(value)},
#define PLOW_GPU_ISA(Name, geometry) \
  constexpr Carried kOf##Name[] = {PLOW_CARRIED_LIST(geometry, PLOW_CARRIED)};
PLOW_GPU_ISAS(PLOW_GPU_ISA)
#undef PLOW_GPU_ISA
#undef PLOW_CARRIED

std::span<const Carried> carried_by(Isa isa) {
  switch (isa) {
#define PLOW_GPU_ISA(Name, geometry) \
  case Isa::k##Name:                 \
    return kOf##Name;
    PLOW_GPU_ISAS(PLOW_GPU_ISA)
#undef PLOW_GPU_ISA
    case Isa::kX86_64:
      break;
  }
  return {};
}

// A header of T at `offset`, or nothing when it would not lie inside.
template <class T>
const T* at(std::span<const std::byte> bytes, uint64_t offset) {
  if (offset % alignof(T) != 0 || offset > bytes.size() || bytes.size() - offset < sizeof(T)) return nullptr;
  return reinterpret_cast<const T*>(bytes.data() + offset);
}

struct Section {
  const Elf64_Shdr* header;
  std::span<const std::byte> bytes;
};

std::vector<Section> sections_of(std::span<const std::byte> object) {
  std::vector<Section> sections;
  const auto* elf = at<Elf64_Ehdr>(object, 0);
  if (elf == nullptr || std::memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0) return sections;
  for (uint32_t i = 0; i < elf->e_shnum; ++i) {
    const auto* header = at<Elf64_Shdr>(object, elf->e_shoff + uint64_t{i} * sizeof(Elf64_Shdr));
    if (header == nullptr) return {};
    const bool inside = header->sh_type != SHT_NOBITS && header->sh_offset <= object.size() &&
                        header->sh_size <= object.size() - header->sh_offset;
    sections.push_back(
        {header, inside ? object.subspan(header->sh_offset, header->sh_size) : std::span<const std::byte>()});
  }
  return sections;
}

// The bytes of a symbol; empty when there is none of that name.
std::span<const std::byte> symbol_bytes(std::span<const std::byte> object, std::string_view name) {
  const std::vector<Section> sections = sections_of(object);
  for (const Section& table : sections) {
    if (table.header->sh_type != SHT_SYMTAB || table.header->sh_link >= sections.size()) continue;
    const auto names = sections[table.header->sh_link].bytes;
    for (uint64_t offset = 0; offset + sizeof(Elf64_Sym) <= table.bytes.size(); offset += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, table.bytes.data() + offset, sizeof(symbol));
      if (symbol.st_name + name.size() >= names.size() ||
          std::memcmp(names.data() + symbol.st_name, name.data(), name.size()) != 0 ||
          names[symbol.st_name + name.size()] != std::byte{0} || symbol.st_shndx >= sections.size()) {
        continue;
      }
      const auto bytes = sections[symbol.st_shndx].bytes;
      // An address, which in an object that was not linked begins at 0 in every section.
      const uint64_t begin = symbol.st_value - sections[symbol.st_shndx].header->sh_addr;
      if (begin <= bytes.size() && symbol.st_size <= bytes.size() - begin)
        return bytes.subspan(begin, symbol.st_size);
    }
  }
  return {};
}

}  // namespace

std::span<const std::byte> interpreter_object(Isa isa) {
  switch (isa) {
#define PLOW_GPU_ISA(Name, geometry) \
  case Isa::k##Name:                 \
    return object_##Name();
    PLOW_GPU_ISAS(PLOW_GPU_ISA)
#undef PLOW_GPU_ISA
    case Isa::kX86_64:
      break;
  }
  return {};
}

Status check_object(std::span<const std::byte> object, Isa isa) {
  const std::span<const Carried> expected = carried_by(isa);
  const auto carried = symbol_bytes(object, "plow_carried");
  if (carried.size() != expected.size() * sizeof(uint32_t)) {
    return verification_error(fmt::format(
        "the interpreter object for {} carries {} bytes of numbers instead of {}. Build plow again.",
        isa_name(isa), carried.size(), expected.size() * sizeof(uint32_t)));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    uint32_t found;
    std::memcpy(&found, carried.data() + i * sizeof(found), sizeof(found));
    if (found == expected[i].value) continue;
    return verification_error(fmt::format(
        "the interpreter object for {} was built with {} = {}, this program with {}. Build plow again.",
        isa_name(isa), expected[i].name, found, expected[i].value));
  }
  return {};
}

}  // namespace plow::gpu
