#include "golden.h"

#include "base/mapped_file.h"
#include "checkpoint/json.h"

namespace plow {

namespace {

template <class T>
std::vector<T> numbers(const JsonValue& object, std::string_view key) {
  std::vector<T> values;
  const JsonValue* list = object.find(key);
  if (list == nullptr || list->as_array() == nullptr) return values;
  for (const JsonValue& value : *list->as_array()) values.push_back(static_cast<T>(value.as_number().value_or(0)));
  return values;
}

double number(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  return value == nullptr ? 0 : value->as_number().value_or(0);
}

GoldenLogits read_logits(const JsonValue& entry) {
  GoldenLogits golden;
  golden.position = static_cast<uint32_t>(number(entry, "position"));
  golden.logits = numbers<double>(entry, "all");
  for (uint32_t id = 0; id < golden.logits.size(); ++id) golden.ids.push_back(id);
  if (golden.logits.empty()) {
    golden.ids = numbers<uint32_t>(entry, "top_ids");
    golden.logits = numbers<double>(entry, "top_logits");
  }
  return golden;
}

}  // namespace

std::vector<uint32_t> GoldenPrompt::sequence() const {
  std::vector<uint32_t> all = ids;
  all.insert(all.end(), greedy.begin(), greedy.end());
  return all;
}

Result<Golden> read_golden(const std::filesystem::path& path) {
  PLOW_TRY(const std::string text, read_text_file(path));
  PLOW_TRY(const JsonValue root, parse_json(text, path.string()));
  Golden golden;
  const JsonValue* tolerance = root.find("tolerance");
  const JsonValue* prompts = root.find("prompts");
  if (tolerance == nullptr || prompts == nullptr || prompts->as_array() == nullptr) {
    return input_error(path.string() + " is not a reference of a model");
  }
  golden.tolerance_f32 = number(*tolerance, "float32");
  golden.tolerance_kv_bf16 = number(*tolerance, "kv_bf16");
  golden.tolerance_bf16 = number(*tolerance, "bf16");
  if (const JsonValue* dtype = root.find("greedy_dtype"); dtype != nullptr && *dtype == JsonValue("float32")) {
    if (const JsonValue* error = root.find("float32")) golden.reference_error = number(*error, "max_error");
  }
  for (const JsonValue& entry : *prompts->as_array()) {
    GoldenPrompt prompt;
    prompt.ids = numbers<uint32_t>(entry, "ids");
    prompt.greedy = numbers<uint32_t>(entry, "greedy");
    prompt.margins = numbers<double>(entry, "margins");
    if (const JsonValue* logits = entry.find("logits"); logits != nullptr && logits->as_array() != nullptr) {
      for (const JsonValue& l : *logits->as_array()) prompt.logits.push_back(read_logits(l));
    }
    golden.prompts.push_back(std::move(prompt));
  }
  return golden;
}

}  // namespace plow
