// Asks plow_verify about many bundles at once, in a process of its own.
#pragma once

#include "base/testing/temp_dir.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace plow {

// Runs `plow_verify ARGUMENTS < input` and returns the lines that it prints; empty when it fails.
inline std::vector<std::string> verifier_lines(const std::string& arguments, const std::string& input) {
  const TempDir folder;
  const std::string in = (folder.path() / "in").string(), out = (folder.path() / "out").string();
  std::ofstream(in, std::ios::binary) << input;
  const std::string command = fmt::format("{} {} < {} > {}", PLOW_VERIFY, arguments, in, out);
  if (std::system(command.c_str()) != 0) return {};
  std::vector<std::string> lines;
  std::ifstream file(out);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// A batch of bundles; verdicts() gives one line for each, in their order: "accepted", or "rejected: " and the
// reason.
class VerifierBatch {
 public:
  void add(std::span<const std::byte> bundle) {
    input_ += std::to_string(bundle.size()) + "\n";
    input_.append(reinterpret_cast<const char*>(bundle.data()), bundle.size());
  }
  std::vector<std::string> verdicts() const { return verifier_lines("--stream", input_); }

 private:
  std::string input_;
};

}  // namespace plow
