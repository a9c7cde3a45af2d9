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

// All of it but the engine: a model can be named, and its prompts be read, while its weights are not in
// memory.
struct ModelText {
  std::string name;
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat_template;
  std::string template_source;  // of it; empty when there is none
  GenerationDefaults defaults;
};
// REQUIRES that `bundle` is that of the directory. Errors: what is wrong with one of its files.
Result<ModelText> load_model_text(const std::filesystem::path& path, const BundleFile& bundle);

struct Model : ModelText {
  Engine engine;
};

// Errors: what is wrong with the directory or with one of its files, by class.
Result<Model> load_model(const std::filesystem::path& bundle, const EngineOptions& options);

// Errors (kInput): not the JSON that plowc writes.
Result<GenerationDefaults> parse_generation_json(std::string_view text);

}  // namespace plow
