#include "runtime/prefix_names.h"

#include <bit>
#include <cstring>

namespace plow {

static_assert(std::endian::native == std::endian::little, "tokens are digested as they lie in memory");

PrefixNames::PrefixNames(uint32_t block_tokens, std::string_view salt)
    : block_tokens_(block_tokens), root_(sha256(std::as_bytes(std::span(salt)))) {}

std::span<const BlockName> PrefixNames::of(std::span<const uint32_t> tokens) {
  const size_t whole = tokens.size() / block_tokens_;
  std::vector<std::byte> link(sizeof(BlockName) + size_t{block_tokens_} * sizeof(uint32_t));
  while (names_.size() < whole) {
    const BlockName& before = names_.empty() ? root_ : names_.back();
    std::memcpy(link.data(), before.data(), sizeof(before));
    std::memcpy(link.data() + sizeof(before), tokens.data() + names_.size() * block_tokens_,
                link.size() - sizeof(before));
    names_.push_back(sha256(link));
  }
  return std::span<const BlockName>(names_).first(whole);
}

}  // namespace plow
