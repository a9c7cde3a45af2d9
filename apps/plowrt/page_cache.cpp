#include "plowrt/page_cache.h"

#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace plow {
namespace {

struct OpenFile {
  explicit OpenFile(const std::filesystem::path& path) : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd >= 0) ::close(fd);
  }
  const int fd;
};

Error unreadable(const std::filesystem::path& file) {
  return input_error(fmt::format("{}: cannot be read ({}).", file.string(), std::strerror(errno)));
}

}  // namespace

Result<double> share_in_memory(const std::filesystem::path& file) {
  PLOW_TRY(const MappedFile mapped, MappedFile::open(file));
  const auto bytes = mapped.bytes();
  if (bytes.empty()) return 1.0;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident((bytes.size() + page - 1) / page);
  // mincore() changes nothing, but its parameter is not const.
  if (::mincore(const_cast<std::byte*>(bytes.data()), bytes.size(), resident.data()) != 0)
    return unreadable(file);
  const auto there = std::ranges::count_if(resident, [](unsigned char flags) { return (flags & 1) != 0; });
  return static_cast<double>(there) / static_cast<double>(resident.size());
}

Status read_into_memory(const std::filesystem::path& file) {
  const OpenFile open(file);
  if (open.fd < 0) return unreadable(file);
  std::vector<char> chunk(size_t{1} << 20);
  ssize_t n = 0;
  while ((n = ::read(open.fd, chunk.data(), chunk.size())) > 0) {
  }
  return n == 0 ? Status() : unreadable(file);
}

Status ask_to_forget(const std::filesystem::path& file) {
  const OpenFile open(file);
  if (open.fd < 0) return unreadable(file);
  ::fdatasync(open.fd);  // pages that are not yet written cannot go
  ::posix_fadvise(open.fd, 0, 0, POSIX_FADV_DONTNEED);
  return {};
}

}  // namespace plow
