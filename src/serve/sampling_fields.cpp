#include "serve/sampling_fields.h"

#include "runtime/engine.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

namespace plow {
namespace {

namespace json = boost::json;

// Whole numbers beyond 53 bits are exact here. -1 stands for none.
std::optional<uint64_t> read_seed(const FieldReader& fields) {
  const json::value* value = fields.find("seed");
  if (value == nullptr) return std::nullopt;
  if (value->is_uint64()) return value->get_uint64();
  if (value->is_double() && value->get_double() >= 0) {
    constexpr double kEnd = 18446744073709551616.0;  // 2^64
    return value->get_double() < kEnd ? static_cast<uint64_t>(value->get_double()) : ~uint64_t{0};
  }
  const int64_t seed = value->is_int64() ? value->get_int64() : static_cast<int64_t>(value->get_double());
  return seed == -1 ? std::nullopt : std::optional(static_cast<uint64_t>(seed));
}

// A token id as a key of an object: "123".
std::optional<uint32_t> id_of(std::string_view text, uint32_t vocab) {
  uint32_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  const bool plain = error == std::errc() && end == text.data() + text.size() && std::to_string(id) == text;
  return plain && id < vocab ? std::optional(id) : std::nullopt;
}

std::optional<ApiError> read_biases(const FieldReader& fields, const ServedModel& model, AnswerSpec& out) {
  constexpr double kMostBias = 100;  // OpenAI's range
  const json::value* biases = fields.find("logit_bias");
  if (biases == nullptr) return {};
  const json::object& object = biases->get_object();
  if (object.size() > kMaxBias) {
    return invalid_field("logit_bias", fmt::format("logit_bias has {} tokens; up to {} may have a bias.",
                                                   object.size(), kMaxBias));
  }
  for (const auto& member : object) {
    const auto id = id_of(member.key(), model.vocab);
    if (!id) {
      return invalid_field(
          "logit_bias", fmt::format("logit_bias must name token ids from 0 to {}, not {}.", model.vocab - 1,
                                    json::serialize(json::value(member.key().substr(0, 60)))));
    }
    const std::optional<double> bias = FieldReader(object).number(member.key());
    if (!bias || *bias < -kMostBias || *bias > kMostBias) {
      return invalid_field(
          "logit_bias",
          fmt::format("logit_bias of token {} must be a number from -{} to {}.", *id, kMostBias, kMostBias));
    }
    out.biases.push_back({*id, static_cast<float>(*bias)});
  }
  std::ranges::sort(out.biases, {}, &TokenBias::token);
  return {};
}

}  // namespace

std::optional<ApiError> read_sampling(const FieldReader& fields, const ServedModel& model, AnswerSpec& out) {
  SamplingParams& p = out.sampling;
  p = model.sampling;
  if (const auto t = fields.number("temperature")) {
    p.flags = *t > 0 ? p.flags & ~uint32_t{kSampleGreedy} : p.flags | kSampleGreedy;
    p.temperature = *t > 0 ? static_cast<float>(*t) : 1.0f;
  }
  const auto set = [&](const char* name, float& target) {
    if (const auto value = fields.number(name)) target = static_cast<float>(*value);
  };
  set("top_p", p.top_p);
  set("min_p", p.min_p);
  set("presence_penalty", p.presence_penalty);
  set("frequency_penalty", p.frequency_penalty);
  set("repetition_penalty", p.repetition_penalty);
  if (const auto k = fields.number("top_k")) p.top_k = *k > 0 ? static_cast<uint32_t>(*k) : 0;
  out.seed = read_seed(fields);
  if (auto error = read_biases(fields, model, out)) return error;
  // The ranges of the table are those of the sampler, but for what a float rounds to: a temperature of 1e-60.
  const Status status = check_sampling(p, model.vocab);
  return status.ok() ? std::nullopt : std::optional(invalid_field("temperature", status.error().message));
}

}  // namespace plow
