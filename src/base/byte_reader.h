// Reads little-endian fields from bytes of unknown origin. Nothing is read out of bounds: a read past the end makes the
// reader bad and returns zero, and the caller asks ok() before it believes anything.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace plow {

static_assert(std::endian::native == std::endian::little, "formats are read by memcpy and are little-endian");

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
    requires std::is_trivially_copyable_v<T>
  T read() {
    T value{};
    if (sizeof(T) > remaining()) {
      fail();
      return value;
    }
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  // `count` bytes, or an empty span when there are fewer (and the reader is bad).
  std::span<const std::byte> read_bytes(uint64_t count) {
    if (count > remaining()) {
      fail();
      return {};
    }
    const auto result = bytes_.subspan(position_, static_cast<size_t>(count));
    position_ += static_cast<size_t>(count);
    return result;
  }

  std::string_view read_string(uint64_t count) {
    const auto bytes = read_bytes(count);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  bool ok() const { return ok_; }
  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

 private:
  void fail() {
    ok_ = false;
    position_ = bytes_.size();
  }

  std::span<const std::byte> bytes_;
  size_t position_ = 0;
  bool ok_ = true;
};

}  // namespace plow
