// plowrt chat: a conversation in the terminal.
#pragma once

#include "base/error.h"
#include "plowrt/sampling_options.h"
#include "runtime/engine.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace plow {

struct ChatOptions {
  std::filesystem::path bundle;
  EngineOptions engine;
  std::string system;
  uint32_t max_tokens = 1024;  // of one answer
  SamplingOptions sampling;
};

// Reads turns from standard input until it ends or /quit. Ctrl-C stops an answer; what was said so far stays.
Status chat_command(const ChatOptions& options);

}  // namespace plow
