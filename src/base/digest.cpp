#include "base/digest.h"

// The state's layout is public only for those who allocate it themselves.
#define XXH_STATIC_LINKING_ONLY
#include <fmt/format.h>
#include <openssl/sha.h>
#include <xxhash.h>

namespace plow {

Digest128 xxh3_128(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

Digest128 xxh3_128_joined(std::initializer_list<std::span<const std::byte>> parts) {
  // Kept on the stack by its documented initialiser; the state holds no memory of its own.
  alignas(64) XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (const auto part : parts) XXH3_128bits_update(&state, part.data(), part.size());
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return {hash.low64, hash.high64};
}

Xxh3Stream::Xxh3Stream() : state_(XXH3_createState()) { XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_)); }

Xxh3Stream::~Xxh3Stream() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }

void Xxh3Stream::update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), bytes.data(), bytes.size());
}

Digest128 Xxh3Stream::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state_));
  return {hash.low64, hash.high64};
}

std::string to_hex(const Digest128& digest) { return fmt::format("{:016x}{:016x}", digest.high, digest.low); }

Sha256 sha256(std::span<const std::byte> bytes) {
  Sha256 digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return digest;
}

std::string to_hex(const Sha256& digest) {
  std::string text;
  for (const uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace plow
