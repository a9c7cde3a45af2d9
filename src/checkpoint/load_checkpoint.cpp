#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf.h"
#include "checkpoint/gguf_model.h"
#include "checkpoint/safetensors.h"

#include <algorithm>
#include <map>

namespace plow {

namespace {

namespace fs = std::filesystem;

constexpr const char* kWhatToGive = "give a folder with config.json and safetensors, or a .gguf file";
constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr size_t kMaxConfigBytes = size_t{16} << 20;  // published ones have less than 100 KB
// One line of about 100 bytes a tensor; the largest published ones have 10 MB.
constexpr size_t kMaxIndexBytes = size_t{64} << 20;

// False only when the file is known not to be there: of one that cannot be looked at, opening says why. (The
// forms without an error_code throw.)
bool may_exist(const fs::path& path) {
  std::error_code error;
  return fs::status(path, error).type() != fs::file_type::not_found;
}

Result<JsonValue> read_json_file(const fs::path& path, size_t max_bytes) {
  PLOW_TRY(const std::string text, read_text_file(path, max_bytes));
  PLOW_TRY(JsonValue value, parse_json(text, path.filename().string(), {.max_bytes = max_bytes}));
  if (value.as_object() == nullptr)
    return input_error(path.filename().string() + ": the document must be a JSON object");
  return value;
}

void sort_by_name(std::vector<CheckpointTensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

Status add_file(const fs::path& path, Checkpoint& checkpoint) {
  PLOW_TRY(MappedFile file, MappedFile::open(path));
  const auto file_idx = static_cast<uint32_t>(checkpoint.files.size());
  PLOW_TRY(auto tensors, read_safetensors(file.bytes(), path.filename().string(), file_idx));
  checkpoint.files.push_back(std::move(file));
  std::move(tensors.begin(), tensors.end(), std::back_inserter(checkpoint.tensors));
  return {};
}

using WeightMap = std::map<std::string, std::string, std::less<>>;  // tensor -> shard

// The weight_map of an index. A shard is a file beside the index: a name with a folder in it would read
// elsewhere.
Result<WeightMap> read_index(const fs::path& path) {
  PLOW_TRY(const JsonValue index, read_json_file(path, kMaxIndexBytes));
  const JsonValue* weight_map = index.find("weight_map");
  if (weight_map == nullptr || weight_map->as_object() == nullptr) {
    return input_error(
        fmt::format("{}: 'weight_map' must be an object of tensor names and file names", kIndex));
  }
  WeightMap shards;
  for (const auto& [name, value] : *weight_map->as_object()) {
    const std::string* shard = value.as_string();
    if (shard == nullptr) {
      return input_error(
          fmt::format("{}: the shard of '{}' must be a string, found {}", kIndex, name, value.brief()));
    }
    if (shard->empty() || shard->find_first_of(std::string_view("/\\\0", 3)) != std::string::npos ||
        *shard == ".." || *shard == ".") {
      return input_error(
          fmt::format("{}: the shard of '{}' must be the name of a file in the same folder, found {}", kIndex,
                      name, value.brief()));
    }
    shards.emplace(name, *shard);
  }
  if (shards.empty()) return input_error(fmt::format("{}: 'weight_map' names no tensor", kIndex));
  return shards;
}

// Every tensor is in exactly the shard that the index says. REQUIRES checkpoint.tensors sorted by name.
Status check_shards(const WeightMap& shards, const Checkpoint& checkpoint) {
  const auto shard_of = [&](const CheckpointTensor& tensor) {
    return checkpoint.files[tensor.file_idx].path().filename().string();
  };
  for (size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const auto& tensor = checkpoint.tensors[i];
    if (i != 0 && tensor.name == checkpoint.tensors[i - 1].name) {
      return input_error(fmt::format("tensor '{}' is in two shards, {} and {}", tensor.name,
                                     shard_of(checkpoint.tensors[i - 1]), shard_of(tensor)));
    }
    const auto listed = shards.find(tensor.name);
    if (listed == shards.end()) {
      return input_error(
          fmt::format("{}: tensor '{}' of {} is not in 'weight_map'", kIndex, tensor.name, shard_of(tensor)));
    }
    if (listed->second != shard_of(tensor)) {
      return input_error(fmt::format("{}: tensor '{}' should be in {}, but it is in {}", kIndex, tensor.name,
                                     listed->second, shard_of(tensor)));
    }
  }
  for (const auto& [name, shard] : shards) {
    if (checkpoint.find(name) == nullptr) {
      return input_error(
          fmt::format("{}: tensor '{}' should be in {}, but it is not there", kIndex, name, shard));
    }
  }
  return {};
}

Status load_shards(const fs::path& folder, Checkpoint& checkpoint) {
  PLOW_TRY(const WeightMap shards, read_index(folder / kIndex));
  std::vector<std::string> names;
  for (const auto& [tensor, shard] : shards) names.push_back(shard);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const auto& name : names) {
    if (!may_exist(folder / name)) {
      return input_error(fmt::format("{}: the shard {} is not in {}", kIndex, name, folder.string()));
    }
    PLOW_TRY_STATUS(add_file(folder / name, checkpoint));
  }
  sort_by_name(checkpoint.tensors);
  return check_shards(shards, checkpoint);
}

// What to say of a folder without weights that can be read.
Error no_weights(const fs::path& folder) {
  std::string advice;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (at->path().extension() == ".gguf") {
      advice = fmt::format(" It holds {}: give that file instead of the folder.", name);
    }
    if (name.starts_with("pytorch_model") && advice.empty()) {
      advice = fmt::format(" It holds {}, which is not read: save the model as safetensors.", name);
    }
  }
  if (advice.empty()) advice = " Download the checkpoint's weights too.";
  return input_error(fmt::format("{} has neither {} nor {}.{}", folder.string(), kSingle, kIndex, advice));
}

Result<Checkpoint> load_folder(const fs::path& folder) {
  Checkpoint checkpoint;
  checkpoint.format = CheckpointFormat::kSafetensors;
  checkpoint.path = folder;
  checkpoint.config_source = "config.json";
  if (!may_exist(folder / "config.json"))
    return input_error(fmt::format("{} has no config.json; {}", folder.string(), kWhatToGive));
  PLOW_TRY(checkpoint.config, read_json_file(folder / "config.json", kMaxConfigBytes));
  if (may_exist(folder / "generation_config.json")) {
    PLOW_TRY(checkpoint.generation_config,
             read_json_file(folder / "generation_config.json", kMaxConfigBytes));
  }
  if (may_exist(folder / kSingle)) {
    PLOW_TRY_STATUS(add_file(folder / kSingle, checkpoint));
    sort_by_name(checkpoint.tensors);
  } else if (may_exist(folder / kIndex)) {
    PLOW_TRY_STATUS(load_shards(folder, checkpoint));
  } else {
    return no_weights(folder);
  }
  return checkpoint;
}

Result<Checkpoint> load_gguf(const fs::path& path) {
  PLOW_TRY(MappedFile file, MappedFile::open(path));
  const std::string source = path.filename().string();
  PLOW_TRY(const GgufFile gguf, read_gguf(file.bytes(), source));
  PLOW_TRY(Checkpoint checkpoint, gguf_to_checkpoint(gguf, source));
  checkpoint.path = path;
  checkpoint.files.push_back(std::move(file));
  sort_by_name(checkpoint.tensors);
  return checkpoint;
}

}  // namespace

Result<Checkpoint> load_checkpoint(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    return input_error(fmt::format("{}: no such file or folder; {}", path.string(), kWhatToGive));
  }
  if (!fs::status_known(status)) return input_error(fmt::format("{}: {}", path.string(), error.message()));
  if (fs::is_directory(status)) return load_folder(path);
  if (path.extension() == ".gguf") return load_gguf(path);
  return input_error(fmt::format("{} is neither a folder nor a .gguf file; {}", path.string(), kWhatToGive));
}

}  // namespace plow
