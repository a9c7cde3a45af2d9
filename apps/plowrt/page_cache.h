// What of a file lies in the memory of this machine, and how to have all or nothing of it there.
#pragma once

#include "base/error.h"

#include <filesystem>

namespace plow {

// Of the file's pages, the share that is in memory, by mincore(2); 1 of an empty file. Errors (kInput): the
// file cannot be read.
Result<double> share_in_memory(const std::filesystem::path& file);

// Reads the file to its end. Errors (kInput): it cannot be read.
Status read_into_memory(const std::filesystem::path& file);

// Asks the system to forget the file's pages (POSIX_FADV_DONTNEED of posix_fadvise(2)). It keeps those that
// are not yet written to the disk, that a process has mapped, and all of a file system in memory: what was
// forgotten is told by share_in_memory(). Errors (kInput): the file cannot be opened.
Status ask_to_forget(const std::filesystem::path& file);

}  // namespace plow
