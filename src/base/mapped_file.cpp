#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace plow {

namespace {

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return input_error(fmt::format("cannot open {}: {}", path.string(), std::strerror(errno)));
  struct stat info{};
  if (::fstat(file.fd, &info) != 0) return input_error(fmt::format("cannot stat {}: {}", path.string(), std::strerror(errno)));
  if (!S_ISREG(info.st_mode)) return input_error(fmt::format("{} is not a regular file", path.string()));
  MappedFile mapped;
  mapped.path_ = path;
  mapped.size_ = static_cast<size_t>(info.st_size);
  if (mapped.size_ == 0) return mapped;
  void* data = ::mmap(nullptr, mapped.size_, PROT_READ, MAP_SHARED, file.fd, 0);
  if (data == MAP_FAILED) {
    mapped.size_ = 0;
    return input_error(fmt::format("cannot map {}: {}", path.string(), std::strerror(errno)));
  }
  mapped.data_ = static_cast<const std::byte*>(data);
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

Result<std::string> read_text_file(const std::filesystem::path& path, size_t max_bytes) {
  PLOW_TRY(auto file, MappedFile::open(path));
  if (file.bytes().size() > max_bytes) {
    return input_error(fmt::format("{} has {} bytes, more than the {} that are read here", path.string(),
                                   file.bytes().size(), max_bytes));
  }
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

}  // namespace plow
