// Facts about the machine that the program runs on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace plow {

struct HostFacts {
  std::string cpu;                    // "Intel(R) Xeon(R) ..."
  std::vector<std::string> features;  // of those that the interpreters look at: avx2, fma, avx512f, ...
  uint32_t cores = 1;                 // that this process may run on (affinity and cgroup quota)
  uint64_t memory_total = 0;          // bytes
  uint64_t memory_available = 0;      // bytes, without swapping; the cgroup's limit counts
};
HostFacts read_host_facts();

// Bytes that may still be written below `path` (its nearest parent that exists).
std::optional<uint64_t> disk_available(std::filesystem::path path);

// The folder of the program that runs. Errors as an empty path: the system does not say.
std::filesystem::path program_folder();

}  // namespace plow
