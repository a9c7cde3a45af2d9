// Ids are distinct 32-bit types: a TileId cannot be passed where a NodeId is meant. Products of the stages are vectors
// indexed by them.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace plow {

template <class Tag>
struct Id {
  static constexpr uint32_t kNone = 0xffffffffu;

  uint32_t value = kNone;

  constexpr Id() = default;
  constexpr explicit Id(uint32_t v) : value(v) {}
  constexpr explicit Id(size_t v) : value(static_cast<uint32_t>(v)) {}
  constexpr explicit Id(int v) : value(static_cast<uint32_t>(v)) {}

  constexpr bool valid() const { return value != kNone; }
  constexpr auto operator<=>(const Id&) const = default;
};

}  // namespace plow

template <class Tag>
struct std::hash<plow::Id<Tag>> {
  size_t operator()(plow::Id<Tag> id) const noexcept { return std::hash<uint32_t>{}(id.value); }
};
