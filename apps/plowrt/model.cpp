#include "plowrt/model.h"

#include "base/mapped_file.h"
#include "console/bundle_dir.h"

#include <fmt/format.h>
#include <simdjson.h>

namespace plow {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMaxGenerationJson = size_t{1} << 20;
constexpr size_t kMaxTemplate = size_t{4} << 20;  // the template compiler's own limit

// The number under `key`, or `fallback` when there is none.
double number_or(const simdjson::dom::element& object, const char* key, double fallback) {
  double value = fallback;
  if (object[key].get(value) != simdjson::SUCCESS) return fallback;
  return value;
}

// Empty when the bundle has none.
Result<std::string> load_template_source(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::string();
  return read_text_file(path, kMaxTemplate);
}

Result<std::optional<ChatTemplate>> compile_chat_template(const fs::path& path, const std::string& source) {
  if (source.empty()) return std::optional<ChatTemplate>();
  auto compiled = ChatTemplate::compile(source);
  if (!compiled.ok()) return compiled.error().at(path.string());
  return std::optional<ChatTemplate>(std::move(compiled).value());
}

Result<GenerationDefaults> load_generation(const fs::path& path) {
  PLOW_TRY(const std::string text, read_text_file(path, kMaxGenerationJson));
  auto defaults = parse_generation_json(text);
  if (!defaults.ok()) return defaults.error().at(path.string());
  return defaults;
}

}  // namespace

Result<GenerationDefaults> parse_generation_json(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(simdjson::padded_string(text)).get(root) != simdjson::SUCCESS || !root.is_object()) {
    return input_error("this is not the JSON object that plowc wrote. Compile the bundle again.");
  }
  GenerationDefaults defaults;
  simdjson::dom::array ids;
  if (root["eos_token_ids"].get(ids) == simdjson::SUCCESS) {
    for (const auto entry : ids) {
      uint64_t id = 0;
      if (entry.get(id) != simdjson::SUCCESS || id > 0xffffffffu)
        return input_error("eos_token_ids must hold token ids. Compile the bundle again.");
      defaults.stop_ids.push_back(static_cast<uint32_t>(id));
    }
  }
  bool sample = false;
  if (root["do_sample"].get(sample) != simdjson::SUCCESS) sample = false;
  SamplingParams& sampling = defaults.sampling;
  sampling = greedy_sampling();
  sampling.repetition_penalty = static_cast<float>(number_or(root, "repetition_penalty", 1));
  if (!sample) return defaults;
  sampling.temperature = static_cast<float>(number_or(root, "temperature", 1));
  sampling.flags = sampling.temperature > 0 ? 0u : kSampleGreedy;
  if (sampling.temperature <= 0) sampling.temperature = 1;
  sampling.top_k = static_cast<uint32_t>(std::max(number_or(root, "top_k", 0), 0.0));
  sampling.top_p = static_cast<float>(number_or(root, "top_p", 1));
  sampling.min_p = static_cast<float>(number_or(root, "min_p", 0));
  return defaults;
}

Result<ModelText> load_model_text(const fs::path& path, const BundleFile& bundle) {
  PLOW_TRY(MappedFile table, MappedFile::open(path / "tokenizer.bin"));
  PLOW_TRY(Tokenizer tokenizer, Tokenizer::open(std::move(table)));
  PLOW_TRY(std::string source, load_template_source(path / "chat_template.jinja"));
  PLOW_TRY(auto chat_template, compile_chat_template(path / "chat_template.jinja", source));
  PLOW_TRY(GenerationDefaults defaults, load_generation(path / "generation.json"));
  defaults.sampling.n_ids = tokenizer.vocab_size();
  return ModelText{model_names(bundle, path).served_name, std::move(tokenizer), std::move(chat_template),
                   std::move(source), std::move(defaults)};
}

Result<Model> load_model(const fs::path& path, const EngineOptions& options) {
  PLOW_TRY_STATUS(check_bundle_dir(path));
  PLOW_TRY(Engine engine, Engine::load(path, options));
  PLOW_TRY(ModelText text, load_model_text(path, engine.bundle()));
  return Model{std::move(text), std::move(engine)};
}

}  // namespace plow
