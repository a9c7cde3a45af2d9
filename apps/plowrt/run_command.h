// plowrt run: one prompt, one answer.
#pragma once

#include "base/error.h"
#include "plowrt/sampling_options.h"
#include "runtime/engine.h"

#include <filesystem>
#include <optional>
#include <string>

namespace plow {

struct RunOptions {
  std::filesystem::path bundle;
  EngineOptions engine;
  std::optional<std::string> prompt;
  std::string prompt_file;  // "-": standard input
  std::string system;
  uint32_t max_tokens = 256;
  SamplingOptions sampling;
  bool raw = false;         // the prompt as it is, without the chat template
  bool ignore_eos = false;  // goes on after the token that ends an answer
  bool json = false;
};

Status run_command(const RunOptions& options);

}  // namespace plow
