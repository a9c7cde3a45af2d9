// Digests. Content identity of our own files uses XXH3-128 (fast; no adversary), pinned hashes of foreign
// files SHA-256.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace plow {

struct Digest128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Digest128&) const = default;
};

Digest128 xxh3_128(std::span<const std::byte> bytes);
// Of the parts one after another, as if they were one run of bytes.
Digest128 xxh3_128_joined(std::initializer_list<std::span<const std::byte>> parts);

// The same over bytes that come in pieces.
class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();
  Xxh3Stream(const Xxh3Stream&) = delete;
  Xxh3Stream& operator=(const Xxh3Stream&) = delete;

  void update(std::span<const std::byte> bytes);
  Digest128 digest() const;

 private:
  void* state_;  // XXH3_state_t
};

std::string to_hex(const Digest128& digest);  // 32 lower-case digits, high word first

using Sha256 = std::array<uint8_t, 32>;
Sha256 sha256(std::span<const std::byte> bytes);
std::string to_hex(const Sha256& digest);

}  // namespace plow
