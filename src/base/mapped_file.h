// A file mapped read-only. Mapping never reads the whole file: pages come in as they are touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/error.h"

namespace plow {

class MappedFile {
 public:
  // Errors (kInput): the file is missing, is not a regular file, or cannot be opened or mapped. An empty file maps to an
  // empty span.
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::filesystem::path path_;
};

// The whole of a small text file (configuration, templates). Errors as MappedFile::open, and kInput when the file is larger
// than `max_bytes`.
Result<std::string> read_text_file(const std::filesystem::path& path, size_t max_bytes = size_t{256} << 20);

}  // namespace plow
