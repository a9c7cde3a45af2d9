// A bundle made ready to answer: engine, tokenizer, chat template, and what the checkpoint's makers
// recommend.
#pragma once

#include "abi/step.h"
#include "base/error.h"
#include "runtime/engine.h"
#include "text/chat_template/chat_template.h"
#include "text/tokenizer/tokenizer.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

// generation.json of the bundle.
struct GenerationDefaults {
  std::vector<uint32_t> stop_ids;
  SamplingParams sampling{};  // greedy when the checkpoint does not ask for sampling
};

struct Model {
  std::string name;
  Engine engine;
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat_template;
  std::string template_source;  // of it; empty when there is none
  GenerationDefaults defaults;
};

// Errors: what is wrong with the directory or with one of its files, by class.
Result<Model> load_model(const std::filesystem::path& bundle, const EngineOptions& options);

// Errors (kInput): not the JSON that plowc writes.
Result<GenerationDefaults> parse_generation_json(std::string_view text);

}  // namespace plow
