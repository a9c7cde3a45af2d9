// A bundle as the programs open it: the directory with model.pkt and what lies beside it.
#pragma once

#include "base/error.h"
#include "bundle/bundle.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace plow {

// What the model is called, for people.
struct ModelNames {
  std::string served_name;   // as it was compiled with --served-name, else from the directory: "smollm2" of
                             // smollm2.plow and of smollm2/bundle
  std::string architecture;  // "LlamaForCausalLM"; empty when the build record has none
};
ModelNames model_names(const BundleFile& bundle, const std::filesystem::path& path);

// Errors (kInput): no such directory, or a checkpoint or something else instead of a bundle.
Status check_bundle_dir(const std::filesystem::path& path);

struct BundleDir {
  BundleFile file;
  ModelNames names;
};
// Errors (kInput): as above, or what BundleFile::open says.
Result<BundleDir> open_bundle_dir(const std::filesystem::path& path);

// What takes how much, a line a kind, and the total.
std::string memory_table(const MemoryPlan& plan);

// Writes a file that appears whole or not at all. Errors: kDoesNotFit when the disk is full, else kInput.
Status write_whole_file(const std::filesystem::path& path, std::string_view text);

}  // namespace plow
