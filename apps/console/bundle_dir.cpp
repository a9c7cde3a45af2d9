#include "console/bundle_dir.h"

#include "base/text_table.h"

#include <fcntl.h>
#include <simdjson.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace plow {

namespace fs = std::filesystem;

namespace {

// The string under `key` of a JSON object; empty when there is none. What is read so is for people only.
std::string string_in(const std::string& text, const char* key) {
  simdjson::dom::parser parser;
  std::string_view value;
  if (parser.parse(text)[key].get(value) != simdjson::SUCCESS) return {};
  return std::string(value);
}

std::string name_of_directory(const fs::path& path) {
  fs::path named = fs::absolute(path).lexically_normal();
  if (!named.has_filename()) named = named.parent_path();
  if (named.filename() == "bundle") named = named.parent_path();
  return (named.extension() == ".plow" ? named.stem() : named.filename()).string();
}

Error write_error(const fs::path& path, int error) {
  const std::string message = fmt::format("cannot write {}: {}", path.string(), std::strerror(error));
  return error == ENOSPC || error == EDQUOT
             ? does_not_fit(message + ". Free some space or choose another file.")
             : input_error(message + ". Choose another file.");
}

}  // namespace

ModelNames model_names(const BundleFile& bundle, const fs::path& path) {
  const std::string record(bundle.build_record());
  ModelNames names{string_in(record, "served_name"), string_in(record, "architecture")};
  if (names.served_name.empty()) names.served_name = name_of_directory(path);
  return names;
}

Status check_bundle_dir(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    return input_error(
        fmt::format("{}: there is no such bundle. plowc makes one: plowc --hf-dir CHECKPOINT --out {}",
                    path.string(), path.string()));
  }
  if (fs::exists(path / "model.pkt", error)) return {};
  if (fs::exists(path / "config.json", error) || path.extension() == ".gguf") {
    return input_error(
        fmt::format("{} is a checkpoint, not a bundle. Compile it first: plowc --hf-dir {} --out BUNDLE",
                    path.string(), path.string()));
  }
  return input_error(fmt::format(
      "{} is not a bundle: it has no model.pkt. Give the directory that plowc wrote.", path.string()));
}

Result<BundleDir> open_bundle_dir(const fs::path& path) {
  PLOW_TRY_STATUS(check_bundle_dir(path));
  PLOW_TRY(BundleFile file, BundleFile::open(path / "model.pkt"));
  ModelNames names = model_names(file, path);
  return BundleDir{std::move(file), std::move(names)};
}

std::string memory_table(const MemoryPlan& plan) {
  TextTable table({"what", ">bytes", ">"});
  const auto add = [&table](const char* what, uint64_t bytes) {
    table.add_row({what, std::to_string(bytes), format_bytes(static_cast<double>(bytes))});
  };
  add("weights", plan.weights);
  add("KV cache", plan.kv);
  add("activations", plan.arena);
  add("counters", plan.counters);
  add("step descriptors", plan.step);
  add("scratch of the workers", plan.scratch);
  add("total", plan.total());
  return table.to_string();
}

Status write_whole_file(const fs::path& path, std::string_view text) {
  const fs::path partial = path.string() + fmt::format(".partial-{}", ::getpid());
  const int fd = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return write_error(path, errno);
  int failed = 0;
  while (!text.empty() && failed == 0) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<size_t>(n));
    } else if (errno != EINTR) {
      failed = errno;
    }
  }
  if (::close(fd) != 0 && failed == 0) failed = errno;
  if (failed == 0 && ::rename(partial.c_str(), path.c_str()) != 0) failed = errno;
  if (failed != 0) {
    ::unlink(partial.c_str());
    return write_error(path, failed);
  }
  return {};
}

}  // namespace plow
