// A bundle as the programs open it: the directory with model.pkt and what lies beside it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"
#include "bundle/bundle.h"

namespace plow {

struct BundleDir {
  std::filesystem::path path;
  BundleFile file;
  std::string name;          // that the model is served under; the directory's name when the build record has none
  std::string architecture;  // "LlamaForCausalLM"; empty when the build record has none
};

// Errors (kInput): no such directory, a checkpoint instead of a bundle, or what BundleFile::open says.
Result<BundleDir> open_bundle_dir(const std::filesystem::path& path);

// What takes how much, a line a kind, and the total.
std::string memory_table(const MemoryPlan& plan);

// Writes a file that appears whole or not at all. Errors: kDoesNotFit when the disk is full, else kInput.
Status write_whole_file(const std::filesystem::path& path, std::string_view text);

}  // namespace plow
