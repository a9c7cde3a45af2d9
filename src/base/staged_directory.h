// A directory that appears whole or not at all: files are written into a hidden sibling, and commit() puts it in place by one
// rename. A process that is killed before that leaves nothing under the final name; the next StagedDirectory for the
// same name removes what a dead process left behind.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "base/error.h"

namespace plow {

class StagedDirectory {
 public:
  // Errors (kInput): the parent is missing or not writable; `final_path` exists and is not a directory that we may replace
  // (kUsage, unless `replace`).
  static Result<StagedDirectory> create(const std::filesystem::path& final_path, bool replace);

  StagedDirectory(StagedDirectory&& other) noexcept;
  StagedDirectory& operator=(StagedDirectory&&) = delete;
  StagedDirectory(const StagedDirectory&) = delete;
  ~StagedDirectory();  // removes the staging directory when commit() was not called

  const std::filesystem::path& path() const { return staging_; }  // write here

  // Writes one file, whole. Errors: kDoesNotFit when the disk is full, kInput otherwise.
  Status write_file(std::string_view name, std::span<const std::byte> bytes) const;
  Status write_file(std::string_view name, std::string_view text) const;

  // A file that is written piece by piece, in order.
  class Writer {
   public:
    Writer(Writer&& other) noexcept;
    Writer& operator=(Writer&&) = delete;
    ~Writer();
    Status append(std::span<const std::byte> bytes);
    Status close();  // must be called: it says whether all was written

   private:
    friend class StagedDirectory;
    Writer(int fd, std::filesystem::path path) : fd_(fd), path_(std::move(path)) {}
    int fd_;
    std::filesystem::path path_;
  };
  Result<Writer> open_file(std::string_view name) const;

  // Syncs the files and renames the directory into place.
  Status commit();

 private:
  StagedDirectory(std::filesystem::path staging, std::filesystem::path final_path);

  std::filesystem::path staging_;
  std::filesystem::path final_;
};

}  // namespace plow
