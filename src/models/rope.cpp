#include "models/rope.h"

#include "models/model_source.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace plow {
namespace {

std::vector<double> default_frequencies(double theta, uint32_t head_dim) {
  std::vector<double> out(head_dim / 2);
  for (size_t j = 0; j < out.size(); ++j)
    out[j] = 1.0 / std::pow(theta, 2.0 * static_cast<double>(j) / head_dim);
  return out;
}

// A number above 0.
Result<double> positive_number(const JsonFields& fields, std::string_view key) {
  PLOW_TRY(const double value, fields.number(key));
  if (!(value > 0)) return fields.error(key, "a number above 0");
  return value;
}
Result<double> positive_number_or(const JsonFields& fields, std::string_view key, double absent) {
  if (!fields.has(key)) {
    fields.find(key);
    return absent;
  }
  return positive_number(fields, key);
}

// How many times each pair turns within the context that the model was trained on decides what happens to it:
// often: nothing; seldom: divided by `factor`; between: a mixture.
Status scale_as_llama3(const JsonFields& fields, const RopeDefaults& defaults, Rope& rope) {
  PLOW_TRY(const double factor, positive_number(fields, "factor"));
  PLOW_TRY(const double low, positive_number(fields, "low_freq_factor"));
  PLOW_TRY(const double high, positive_number(fields, "high_freq_factor"));
  PLOW_TRY(const int64_t context,
           fields.positive_or("original_max_position_embeddings", defaults.max_position));
  if (!(high > low)) return fields.error("high_freq_factor", "above low_freq_factor");
  for (double& frequency : rope.inverse_frequencies) {
    const double turns = static_cast<double>(context) * frequency / (2 * std::numbers::pi);
    if (turns < low) {
      frequency /= factor;
    } else if (turns <= high) {
      const double smooth = (turns - low) / (high - low);
      frequency = (1 - smooth) * frequency / factor + smooth * frequency;
    }
  }
  return {};
}

double yarn_magnitude(double factor, double scale) {
  return factor <= 1 ? 1.0 : 0.1 * scale * std::log(factor) + 1.0;
}

Result<float> yarn_attention_factor(const JsonFields& fields, double factor) {
  PLOW_TRY(const double given, positive_number_or(fields, "attention_factor", 0));
  PLOW_TRY(const double scale, fields.number_or("mscale", 0));
  PLOW_TRY(const double scale_all_dim, fields.number_or("mscale_all_dim", 0));
  if (given > 0) return static_cast<float>(given);
  if (scale == 0 || scale_all_dim == 0) return static_cast<float>(yarn_magnitude(factor, 1));
  const double ratio = yarn_magnitude(factor, scale) / yarn_magnitude(factor, scale_all_dim);
  if (!std::isfinite(ratio) || !(ratio > 0))
    return fields.error("mscale_all_dim", "such that the attention factor is above 0");
  return static_cast<float>(ratio);
}

// Pairs that turn more than beta_fast times in the original context stay, those that turn less than beta_slow
// times are divided by `factor`; between them is a ramp over the pairs' index.
Status scale_as_yarn(const JsonFields& fields, const RopeDefaults& defaults, double theta, Rope& rope) {
  PLOW_TRY(const int64_t context,
           fields.positive_or("original_max_position_embeddings", defaults.max_position));
  const double ratio = static_cast<double>(defaults.max_position) / static_cast<double>(context);
  PLOW_TRY(const double factor, positive_number_or(fields, "factor", ratio));
  PLOW_TRY(rope.attention_factor, yarn_attention_factor(fields, factor));
  PLOW_TRY(const double fast, positive_number_or(fields, "beta_fast", 32));
  PLOW_TRY(const double slow, positive_number_or(fields, "beta_slow", 1));
  PLOW_TRY(const bool truncate, fields.boolean_or("truncate", true));
  if (!(theta > 1)) return fields.error("rope_theta", "above 1 for yarn");
  const double dim = defaults.head_dim;
  const auto pair_that_turns = [&](double turns) {
    return dim * std::log(static_cast<double>(context) / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(theta));
  };
  double first = pair_that_turns(fast);
  double last = pair_that_turns(slow);
  if (truncate) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, dim - 1);
  if (first == last) last += 0.001;  // as transformers does, so that the ramp has a slope
  for (size_t j = 0; j < rope.inverse_frequencies.size(); ++j) {
    const double ramp = std::clamp((static_cast<double>(j) - first) / (last - first), 0.0, 1.0);
    rope.inverse_frequencies[j] *= ramp / factor + (1 - ramp);
  }
  return {};
}

// "rope_type", or "type" in older files; both only if they agree.
Result<std::string> rope_type(const JsonFields& fields) {
  PLOW_TRY(const std::string old_name, fields.string_or("type", "default"));
  PLOW_TRY(const std::string name, fields.string_or("rope_type", old_name));
  if (fields.has("type") && name != old_name)
    return fields.error("type", "what 'rope_type' is: '" + name + "'");
  return name;
}

}  // namespace

Result<Rope> read_rope_parameters(const std::optional<JsonFields>& parameters, const RopeDefaults& defaults) {
  if (!parameters) return Rope{default_frequencies(defaults.theta, defaults.head_dim), 1.0f};
  const JsonFields& fields = *parameters;
  PLOW_TRY(const std::string type, rope_type(fields));
  PLOW_TRY(const double theta, positive_number_or(fields, "rope_theta", defaults.theta));
  PLOW_TRY(const double partial, fields.number_or("partial_rotary_factor", 1.0));
  if (partial != 1.0)
    return fields.error("partial_rotary_factor", "1: this architecture rotates whole heads");
  fields.ignore({"finetuned"});  // a remark of early yarn models
  ignore_null_fields(fields);
  Rope rope{default_frequencies(theta, defaults.head_dim), 1.0f};
  if (type == "linear") {
    PLOW_TRY(const double factor, positive_number(fields, "factor"));
    for (double& frequency : rope.inverse_frequencies) frequency /= factor;
  } else if (type == "dynamic") {
    if (const auto factor = positive_number(fields, "factor"); !factor.ok()) return factor.error();
  } else if (type == "llama3") {
    PLOW_TRY_STATUS(scale_as_llama3(fields, defaults, rope));
  } else if (type == "yarn") {
    PLOW_TRY_STATUS(scale_as_yarn(fields, defaults, theta, rope));
  } else if (type != "default") {
    return fields.error(fields.has("rope_type") ? "rope_type" : "type",
                        "'default', 'linear', 'dynamic', 'llama3' or 'yarn'");
  }
  for (double frequency : rope.inverse_frequencies) {
    if (!std::isfinite(frequency))
      return fields.error("the rope parameters give a frequency that is not a finite number");
  }
  return rope;
}

Result<Rope> read_rope(const JsonFields& config, const RopeDefaults& defaults) {
  RopeDefaults completed = defaults;
  PLOW_TRY(completed.theta, positive_number_or(config, "rope_theta", defaults.theta));
  const JsonValue* scaling = config.find("rope_scaling");
  const JsonValue* parameters = config.find("rope_parameters");
  const bool both = config.has("rope_scaling") && config.has("rope_parameters");
  if (both && !(*scaling == *parameters)) {
    return config.error(
        "'rope_scaling' and 'rope_parameters' are both there and differ; one of them must go");
  }
  PLOW_TRY(const auto fields,
           config.object_or_none(config.has("rope_parameters") ? "rope_parameters" : "rope_scaling"));
  return read_rope_parameters(fields, completed);
}

}  // namespace plow
