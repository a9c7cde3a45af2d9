#include "compile/text_files.h"

#include <algorithm>
#include <boost/json.hpp>
#include <set>

#include "text/chat_template/chat_template.h"
#include "text/tokenizer/compile_tokenizer.h"

namespace plow {

namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

// What is read from the checkpoint, whichever its format.
struct TextSources {
  std::vector<std::byte> tokenizer;  // tokenizer.bin
  std::string chat_template;         // empty when there is none
};

Result<std::string> read_if_there(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::string();
  return read_text_file(path);
}

// tokenizer_config.json's chat_template: a string, or a list of {name, template} of which "default" is ours.
std::string template_in_config(const JsonValue& config) {
  const JsonValue* value = config.find("chat_template");
  if (value == nullptr) return {};
  if (const std::string* text = value->as_string()) return *text;
  if (const JsonValue::Array* list = value->as_array()) {
    for (const JsonValue& entry : *list) {
      const JsonValue* name = entry.find("name");
      const JsonValue* text = entry.find("template");
      if (name != nullptr && name->as_string() != nullptr && *name->as_string() == "default" && text != nullptr &&
          text->as_string() != nullptr) {
        return *text->as_string();
      }
    }
  }
  return {};
}

Result<TextSources> from_directory(const fs::path& folder, const StagedDirectory& out) {
  PLOW_TRY(const std::string tokenizer, read_if_there(folder / "tokenizer.json"));
  if (tokenizer.empty()) {
    return input_error(fmt::format("{} has no tokenizer.json; export it with the checkpoint (save_pretrained of a fast tokenizer writes it)",
                                   folder.string()));
  }
  PLOW_TRY(const std::string config, read_if_there(folder / "tokenizer_config.json"));
  PLOW_TRY(const std::string template_file, read_if_there(folder / "chat_template.jinja"));
  TextSources sources;
  auto compiled = compile_tokenizer(tokenizer, config);
  if (!compiled.ok()) return compiled.error().at(folder.string());
  sources.tokenizer = std::move(compiled).value();
  sources.chat_template = template_file;
  if (template_file.empty() && !config.empty()) {
    PLOW_TRY(const JsonValue tree, parse_json(config, "tokenizer_config.json"));
    sources.chat_template = template_in_config(tree);
  }
  PLOW_TRY_STATUS(out.write_file("tokenizer.json", tokenizer));
  if (!config.empty()) PLOW_TRY_STATUS(out.write_file("tokenizer_config.json", config));
  return sources;
}

GgufTokenizerSource source_of(const GgufTokenizer& gguf) {
  GgufTokenizerSource source;
  source.model = gguf.model;
  source.pre = gguf.pre;
  for (const std::string_view token : gguf.tokens) source.tokens.emplace_back(token);
  for (size_t i = 0; i < gguf.scores.size(); ++i) source.scores.push_back(gguf.scores[i]);
  for (size_t i = 0; i < gguf.token_types.size(); ++i) source.types.push_back(gguf.token_types[i]);
  for (const std::string_view merge : gguf.merges) source.merges.emplace_back(merge);
  source.bos_id = gguf.bos_id;
  source.eos_id = gguf.eos_id;
  source.unk_id = gguf.unknown_id;
  source.pad_id = gguf.padding_id;
  source.eot_id = gguf.eot_id;
  source.sep_id = gguf.separator_id;
  source.cls_id = gguf.cls_id;
  source.add_bos = gguf.add_bos;
  source.add_eos = gguf.add_eos;
  source.add_space_prefix = gguf.add_space_prefix;
  return source;
}

Result<TextSources> from_gguf(const GgufTokenizer& gguf) {
  TextSources sources;
  PLOW_TRY(sources.tokenizer, compile_tokenizer(source_of(gguf)));
  sources.chat_template = gguf.chat_template.value_or("");
  return sources;
}

// Token ids under a key that may hold one, a list or nothing.
Result<std::vector<int64_t>> ids_of(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  std::vector<int64_t> ids;
  if (value == nullptr || value->is_null()) return ids;
  if (const int64_t* id = value->as_int()) return std::vector<int64_t>{*id};
  if (const JsonValue::Array* list = value->as_array()) {
    for (const JsonValue& entry : *list) {
      if (entry.as_int() == nullptr) return input_error(fmt::format("'{}' must hold token ids, found {}", key, value->brief()));
      ids.push_back(*entry.as_int());
    }
    return ids;
  }
  return input_error(fmt::format("'{}' must be a token id or a list of them, found {}", key, value->brief()));
}

// Where an answer ends, where a text begins, and the sampling that the checkpoint's makers recommend.
Result<std::string> generation_json(const Checkpoint& checkpoint) {
  const JsonValue empty{JsonValue::Object{}};
  const JsonValue& generation = checkpoint.generation_config ? *checkpoint.generation_config : empty;
  std::set<int64_t> eos;
  for (const JsonValue* object : {&checkpoint.config, &generation}) {
    PLOW_TRY(const auto ids, ids_of(*object, "eos_token_id"));
    eos.insert(ids.begin(), ids.end());
  }
  if (checkpoint.gguf_tokenizer) {
    for (const auto& id : {checkpoint.gguf_tokenizer->eos_id, checkpoint.gguf_tokenizer->eot_id, checkpoint.gguf_tokenizer->eom_id}) {
      if (id) eos.insert(*id);
    }
  }
  json::object out;
  out["eos_token_ids"] = json::array(eos.begin(), eos.end());
  PLOW_TRY(const auto bos, ids_of(generation.find("bos_token_id") != nullptr ? generation : checkpoint.config, "bos_token_id"));
  if (!bos.empty()) out["bos_token_id"] = bos[0];
  for (const char* key : {"temperature", "top_p", "top_k", "min_p", "repetition_penalty"}) {
    const JsonValue* value = generation.find(key);
    if (value != nullptr && value->as_number()) out[key] = *value->as_number();
  }
  if (const JsonValue* sample = generation.find("do_sample"); sample != nullptr && sample->as_bool() != nullptr) {
    out["do_sample"] = *sample->as_bool();
  }
  return json::serialize(out) + "\n";
}

}  // namespace

Status write_text_files(const Checkpoint& checkpoint, const StagedDirectory& directory) {
  PLOW_TRY(const TextSources sources,
           checkpoint.gguf_tokenizer ? from_gguf(*checkpoint.gguf_tokenizer) : from_directory(checkpoint.path, directory));
  PLOW_TRY_STATUS(directory.write_file("tokenizer.bin", sources.tokenizer));
  if (!sources.chat_template.empty()) {
    if (auto compiled = ChatTemplate::compile(sources.chat_template); !compiled.ok()) return compiled.error().at(checkpoint.path.string());
    PLOW_TRY_STATUS(directory.write_file("chat_template.jinja", sources.chat_template));
  }
  PLOW_TRY(const std::string generation, generation_json(checkpoint));
  return directory.write_file("generation.json", generation);
}

}  // namespace plow
