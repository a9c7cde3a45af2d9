#include "console/host.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string_view>

namespace plow {

namespace {

// The value of "key : value" in a file of /proc; empty when it is not there.
std::string proc_value(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t key_end = line.find_last_not_of(" \t", colon - 1);
    if (std::string_view(line).substr(0, key_end + 1) != key) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

uint64_t meminfo_bytes(std::string_view key) {
  uint64_t kib = 0;
  std::istringstream(proc_value("/proc/meminfo", key)) >> kib;
  return kib * 1024;
}

// The first word of a cgroup v2 file as a number; nothing when it is absent or "max".
std::optional<uint64_t> cgroup_number(const char* path) {
  std::ifstream file(path);
  uint64_t value = 0;
  if (!(file >> value)) return std::nullopt;
  return value;
}

std::vector<std::string> interpreter_features() {
  // Names as /proc/cpuinfo spells them; those that select a body of the x86-64 interpreter.
  constexpr const char* kLookedAt[] = {"avx2",     "fma",         "f16c",        "avx512f", "avx512bw",
                                       "avx512vl", "avx512_bf16", "avx512_vnni", "amx_bf16"};
  std::istringstream flags(proc_value("/proc/cpuinfo", "flags"));
  std::vector<std::string> all;
  for (std::string flag; flags >> flag;) all.push_back(flag);
  std::vector<std::string> found;
  for (const char* name : kLookedAt) {
    if (std::find(all.begin(), all.end(), name) != all.end()) found.emplace_back(name);
  }
  return found;
}

uint32_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  uint32_t cores =
      ::sched_getaffinity(0, sizeof(set), &set) == 0 ? static_cast<uint32_t>(CPU_COUNT(&set)) : 1;
  std::ifstream quota_file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (quota_file >> quota >> period && period > 0) {
    cores = std::min(cores, static_cast<uint32_t>(std::ceil(quota / period)));
  }
  return std::max(cores, 1u);
}

}  // namespace

HostFacts read_host_facts() {
  HostFacts facts;
  facts.cpu = proc_value("/proc/cpuinfo", "model name");
  facts.features = interpreter_features();
  facts.cores = usable_cores();
  facts.memory_total = meminfo_bytes("MemTotal");
  facts.memory_available = meminfo_bytes("MemAvailable");
  const auto limit = cgroup_number("/sys/fs/cgroup/memory.max");
  if (limit && *limit < facts.memory_total) {
    const uint64_t used = cgroup_number("/sys/fs/cgroup/memory.current").value_or(0);
    facts.memory_total = *limit;
    facts.memory_available = std::min(facts.memory_available, *limit > used ? *limit - used : 0);
  }
  return facts;
}

std::optional<uint64_t> disk_available(std::filesystem::path path) {
  std::error_code error;
  path = std::filesystem::absolute(path, error);
  while (!path.empty() && !std::filesystem::exists(path, error) && path != path.root_path())
    path = path.parent_path();
  const auto space = std::filesystem::space(path, error);
  if (error) return std::nullopt;
  return space.available;
}

std::filesystem::path program_folder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

}  // namespace plow
