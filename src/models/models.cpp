#include "models/models.h"

#include "models/model_source.h"

namespace plow {
namespace {

using Build = Result<OpGraph> (*)(ModelSource&);

struct Family {
  const char* architecture;
  Build build;
};

constexpr Family kFamilies[] = {
#define PLOW_MODEL(architecture, function) {#architecture, function},
#include "models/models.def"
};

std::string supported() {
  std::string list;
  for (const Family& family : kFamilies)
    list += (list.empty() ? "" : ", ") + std::string(family.architecture);
  return list;
}

Result<const Family*> family_of(const JsonFields& config) {
  PLOW_TRY(const std::vector<std::string> names, config.strings("architectures"));
  if (names.size() != 1) return config.error("architectures", "a list of one name");
  for (const Family& family : kFamilies) {
    if (names[0] == family.architecture) return &family;
  }
  return config.error(
      fmt::format("the architecture '{}' is not supported; supported are {}", names[0], supported()));
}

}  // namespace

Result<OpGraph> build_model(const Checkpoint& checkpoint, const ModelOptions& options) {
  JsonReader reader(checkpoint.config, checkpoint.config_source);
  PLOW_TRY(const JsonFields config, reader.root());
  PLOW_TRY(const Family* const family, family_of(config));
  TensorClaims tensors(checkpoint, options, family->architecture);
  ignore_harmless_fields(config);
  ModelSource source{reader, config, tensors, options};
  return family->build(source);
}

}  // namespace plow
