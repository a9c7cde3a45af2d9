#include "plowrt/sampling_options.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>

namespace plow {

namespace {

struct Parameter {
  const char* name;
  double least, most;  // both allowed
  bool whole;          // no fraction
  void (*set)(SamplingOptions&, double);
};

// Ranges: temperature and penalties as OpenAI's API documents them; a repetition penalty of 0 would divide by
// it.
constexpr std::array<Parameter, 7> kParameters = {{
    {"temperature", 0, 100, false, [](SamplingOptions& o, double v) { o.temperature = v; }},
    {"top-k", 0, 1e9, true, [](SamplingOptions& o, double v) { o.top_k = static_cast<uint32_t>(v); }},
    {"top-p", 0.001, 1, false, [](SamplingOptions& o, double v) { o.top_p = v; }},
    {"min-p", 0, 1, false, [](SamplingOptions& o, double v) { o.min_p = v; }},
    {"repetition-penalty", 0.01, 100, false, [](SamplingOptions& o, double v) { o.repetition_penalty = v; }},
    {"presence-penalty", -2, 2, false, [](SamplingOptions& o, double v) { o.presence_penalty = v; }},
    {"frequency-penalty", -2, 2, false, [](SamplingOptions& o, double v) { o.frequency_penalty = v; }},
}};

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

SamplingParams apply_sampling(const SamplingParams& recommended, const SamplingOptions& options) {
  SamplingParams p = recommended;
  if (options.temperature) {
    p.flags = *options.temperature > 0 ? p.flags & ~uint32_t{kSampleGreedy} : p.flags | kSampleGreedy;
    p.temperature = *options.temperature > 0 ? static_cast<float>(*options.temperature) : 1.0f;
  }
  if (options.top_k) p.top_k = *options.top_k;
  if (options.top_p) p.top_p = static_cast<float>(*options.top_p);
  if (options.min_p) p.min_p = static_cast<float>(*options.min_p);
  if (options.repetition_penalty) p.repetition_penalty = static_cast<float>(*options.repetition_penalty);
  if (options.presence_penalty) p.presence_penalty = static_cast<float>(*options.presence_penalty);
  if (options.frequency_penalty) p.frequency_penalty = static_cast<float>(*options.frequency_penalty);
  p.seed = options.seed ? *options.seed : std::random_device{}();
  return p;
}

Status set_sampling(SamplingOptions& options, std::string_view name, std::string_view value) {
  if (name == "seed") {
    const auto seed = parse_number<uint64_t>(value);
    if (!seed)
      return usage_error(fmt::format("seed must be a whole number from 0 to {}, not '{}'",
                                     std::numeric_limits<uint64_t>::max(), value));
    options.seed = *seed;
    return {};
  }
  for (const Parameter& parameter : kParameters) {
    if (name != parameter.name) continue;
    const auto number = parse_number<double>(value);
    const bool allowed = number && *number >= parameter.least && *number <= parameter.most && (!parameter.whole || *number == std::floor(*number));
    if (!allowed) {
      return usage_error(fmt::format("{} must be a {}number from {} to {}, not '{}'", name, parameter.whole ? "whole " : "", parameter.least,
                                     parameter.most, value));
    }
    parameter.set(options, *number);
    return {};
  }
  std::string names = "seed";
  for (const Parameter& parameter : kParameters) names += fmt::format(", {}", parameter.name);
  return usage_error(fmt::format("there is no parameter '{}'. There are: {}.", name, names));
}

}  // namespace plow
