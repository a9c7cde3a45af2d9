#include "base/staged_directory.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>

namespace plow {

namespace fs = std::filesystem;

namespace {

// Staging directories are named ".NAME.staging-PID", so that leftovers of a dead process can be told from a compile that
// is still running.
std::string staging_prefix(const fs::path& final_path) { return "." + final_path.filename().string() + ".staging-"; }

bool process_alive(std::string_view pid_text) {
  int pid = 0;
  const auto [end, error] = std::from_chars(pid_text.data(), pid_text.data() + pid_text.size(), pid);
  if (error != std::errc{} || pid <= 0) return false;
  return ::kill(pid, 0) == 0 || errno == EPERM;
}

void remove_leftovers(const fs::path& parent, const std::string& prefix) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && !process_alive(std::string_view(name).substr(prefix.size()))) {
      fs::remove_all(entry.path(), ignored);
    }
  }
}

Error write_failure(const fs::path& path, int error) {
  const std::string message = fmt::format("cannot write {}: {}", path.string(), std::strerror(error));
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) return does_not_fit(message + ". Free some space or choose another --out.");
  return input_error(message);
}

}  // namespace

StagedDirectory::StagedDirectory(fs::path staging, fs::path final_path)
    : staging_(std::move(staging)), final_(std::move(final_path)) {}

StagedDirectory::StagedDirectory(StagedDirectory&& other) noexcept
    : staging_(std::exchange(other.staging_, {})), final_(std::exchange(other.final_, {})) {}

StagedDirectory::~StagedDirectory() {
  std::error_code ignored;
  if (!staging_.empty()) fs::remove_all(staging_, ignored);
}

Result<StagedDirectory> StagedDirectory::create(const fs::path& final_path, bool replace) {
  fs::path target = fs::absolute(final_path).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  const fs::path parent = target.parent_path();
  std::error_code error;
  if (!fs::is_directory(parent, error)) {
    return input_error(fmt::format("the folder {} does not exist; create it first", parent.string()));
  }
  if (fs::exists(target, error)) {
    if (!fs::is_directory(target, error)) {
      return input_error(fmt::format("{} exists and is not a directory", target.string()));
    }
    if (!replace && !fs::is_empty(target, error)) {
      return usage_error(fmt::format("{} exists already; give --force to replace it", target.string()));
    }
  }
  const std::string prefix = staging_prefix(target);
  remove_leftovers(parent, prefix);
  const fs::path staging = parent / (prefix + std::to_string(::getpid()));
  fs::remove_all(staging, error);
  if (!fs::create_directory(staging, error)) {
    return input_error(fmt::format("cannot create {}: {}", staging.string(), error.message()));
  }
  return StagedDirectory(staging, target);
}

StagedDirectory::Writer::Writer(Writer&& other) noexcept : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

StagedDirectory::Writer::~Writer() {
  if (fd_ >= 0) ::close(fd_);
}

Status StagedDirectory::Writer::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return write_failure(path_, errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

Status StagedDirectory::Writer::close() {
  if (::close(std::exchange(fd_, -1)) != 0) return write_failure(path_, errno);
  return {};
}

Result<StagedDirectory::Writer> StagedDirectory::open_file(std::string_view name) const {
  const fs::path path = staging_ / name;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return write_failure(path, errno);
  return Writer(fd, path);
}

Status StagedDirectory::write_file(std::string_view name, std::span<const std::byte> bytes) const {
  PLOW_TRY(auto file, open_file(name));
  PLOW_TRY_STATUS(file.append(bytes));
  return file.close();
}

Status StagedDirectory::write_file(std::string_view name, std::string_view text) const {
  return write_file(name, std::as_bytes(std::span(text.data(), text.size())));
}

Status StagedDirectory::commit() {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(staging_, error)) {
    const int fd = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return write_failure(entry.path(), errno);
    const int failed = ::fsync(fd) == 0 ? 0 : errno;
    ::close(fd);
    if (failed != 0) return write_failure(entry.path(), failed);
  }
  // rename(2) replaces an empty directory only: an old bundle is exchanged with the new one and then removed, so the
  // name never points at nothing.
  if (fs::exists(final_, error)) {
    if (::renameat2(AT_FDCWD, staging_.c_str(), AT_FDCWD, final_.c_str(), RENAME_EXCHANGE) != 0) {
      return write_failure(final_, errno);
    }
    fs::remove_all(staging_, error);
  } else if (::rename(staging_.c_str(), final_.c_str()) != 0) {
    return write_failure(final_, errno);
  }
  staging_.clear();
  return {};
}

}  // namespace plow
