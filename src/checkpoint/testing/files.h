// Files for tests: builders that can also build wrong ones, and folders that vanish. For *_test.cpp only.
#pragma once

#include "base/testing/temp_dir.h"
#include "checkpoint/gguf.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

namespace plow::testing_files {

// A folder for files that a test writes.
class FilesDir : public TempDir {
 public:
  std::filesystem::path write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path() / name, std::ios::binary) << bytes;
    return path() / name;
  }
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

inline std::string safetensors(std::string_view header, std::string_view data) {
  return raw<uint64_t>(header.size()) + std::string(header) + std::string(data);
}

// GGUF byte by byte: every field can be given a wrong value.
class GgufBuilder {
 public:
  static std::string text(std::string_view s) { return raw<uint64_t>(s.size()) + std::string(s); }

  GgufBuilder& raw_entry(std::string_view key, uint32_t type, std::string_view value) {
    metadata_ += text(key) + raw<uint32_t>(type) + std::string(value);
    ++n_metadata_;
    return *this;
  }
  GgufBuilder& string(std::string_view key, std::string_view value) { return raw_entry(key, 8, text(value)); }
  GgufBuilder& u32(std::string_view key, uint32_t value) { return raw_entry(key, 4, raw(value)); }
  GgufBuilder& f32(std::string_view key, float value) { return raw_entry(key, 6, raw(value)); }
  GgufBuilder& array(std::string_view key, uint32_t element, uint64_t count, std::string_view elements) {
    return raw_entry(key, 9, raw(element) + raw(count) + std::string(elements));
  }
  GgufBuilder& strings(std::string_view key, std::initializer_list<std::string_view> values) {
    std::string elements;
    for (const auto value : values) elements += text(value);
    return array(key, 8, values.size(), elements);
  }
  // `dims` as the file has them: fastest first.
  GgufBuilder& tensor(std::string_view name, std::initializer_list<uint64_t> dims, uint32_t type,
                      uint64_t offset) {
    tensors_ += text(name) + raw(static_cast<uint32_t>(dims.size()));
    for (const auto d : dims) tensors_ += raw(d);
    tensors_ += raw(type) + raw(offset);
    ++n_tensors_;
    return *this;
  }
  // A float32 tensor after the ones before it, all of its values 0.
  GgufBuilder& zeros(std::string_view name, std::initializer_list<uint64_t> dims) {
    tensor(name, dims, 0, data_bytes_);
    uint64_t bytes = 4;
    for (const auto d : dims) bytes *= d;
    data_bytes_ += (bytes + 31) / 32 * 32;
    return *this;
  }

  std::string magic = "GGUF";
  uint32_t version = 3;
  int64_t extra_metadata = 0;  // claimed beyond what is there
  int64_t extra_tensors = 0;
  uint64_t alignment = 32;

  std::string build(uint64_t data_bytes) const {
    std::string file = magic + raw(version) + raw(n_tensors_ + static_cast<uint64_t>(extra_tensors)) +
                       raw(n_metadata_ + static_cast<uint64_t>(extra_metadata)) + metadata_ + tensors_;
    file.resize((file.size() + alignment - 1) / alignment * alignment + data_bytes);
    return file;
  }
  std::string build() const { return build(data_bytes_); }

 private:
  std::string metadata_, tensors_;
  uint64_t n_metadata_ = 0, n_tensors_ = 0, data_bytes_ = 0;
};

}  // namespace plow::testing_files
