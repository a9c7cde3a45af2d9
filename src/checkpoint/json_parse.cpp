#include "checkpoint/json.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>

namespace plow {

namespace {

namespace od = simdjson::ondemand;

constexpr std::string_view kFloatKey =
    "__float__";  // transformers 5 writes what JSON has no word for under this key

std::string_view trimmed(std::string_view token) {
  while (!token.empty() && std::string_view(" \t\r\n").find(token.back()) != std::string_view::npos) {
    token.remove_suffix(1);
  }
  return token;
}

std::optional<double> named_float(std::string_view name) {
  if (name == "Infinity") return std::numeric_limits<double>::infinity();
  if (name == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (name == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

// RFC 8259, section 6: -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
bool is_number(std::string_view text) {
  size_t at = 0;
  const auto digits = [&] {
    const size_t first = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at - first;
  };
  const auto take = [&](std::string_view any) {
    const bool found = at < text.size() && any.find(text[at]) != std::string_view::npos;
    if (found) ++at;
    return found;
  };
  take("-");
  const size_t whole_at = at;
  const size_t n_whole = digits();
  if (n_whole == 0 || (n_whole > 1 && text[whole_at] == '0')) return false;
  if (take(".") && digits() == 0) return false;
  if (take("eE")) {
    take("+-");
    if (digits() == 0) return false;
  }
  return at == text.size();
}

// The string of {"__float__": string}, else nothing.
std::optional<double> wrapped_float(const JsonValue::Object& members) {
  if (members.size() != 1 || members[0].key != kFloatKey) return std::nullopt;
  const std::string* name = members[0].value.as_string();
  return name != nullptr ? named_float(*name) : std::nullopt;
}

class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, const std::string& source, const JsonLimits& limits)
      : text_(text), source_(source), limits_(limits) {}

  Result<JsonValue> build() {
    const simdjson::padded_string padded(text_);
    od::parser parser(std::max(limits_.max_bytes, size_t{64}));
    od::document document;
    if (const auto code = parser.iterate(padded).get(document)) return fail(code);
    document_ = &document;
    od::value root;
    const std::string_view first = text_.substr(std::min(text_.find_first_not_of(" \t\r\n"), text_.size()));
    if (first.empty() || (first[0] != '{' && first[0] != '[')) {
      return input_error(source_ + ": the document must be a JSON object or array");
    }
    if (const auto code = document.get_value().get(root)) return fail(code);
    PLOW_TRY(JsonValue tree, read(root, 1));
    const char* rest = nullptr;
    if (document.current_location().get(rest) != simdjson::OUT_OF_BOUNDS)
      return input_error(source_ + ": there is text after the end of the JSON document");
    if (tree.as_number())
      return input_error(source_ + ": the document must be a JSON object or array, not a number");
    return tree;
  }

 private:
  Result<JsonValue> read(od::value value, uint32_t depth) {
    if (++n_values_ > limits_.max_values) {
      return input_error(fmt::format("{}: more than {} JSON values", source_, limits_.max_values));
    }
    const std::string_view token = value.raw_json_token();
    switch (token.empty() ? '\0' : token[0]) {
      case '{':
      case '[':
        if (depth > limits_.max_depth) {
          return input_error(
              fmt::format("{}: JSON nested deeper than {} levels", source_, limits_.max_depth));
        }
        if (token[0] == '{') return read_object(value, depth);
        return read_array(value, depth);
      case '"': {
        std::string_view string;
        if (const auto code = value.get_string().get(string)) return fail(code);
        return JsonValue(std::string(string));
      }
      default:
        return read_word(trimmed(token));
    }
  }

  Result<JsonValue> read_array(od::value value, uint32_t depth) {
    od::array array;
    if (const auto code = value.get_array().get(array)) return fail(code);
    JsonValue::Array elements;
    for (auto element : array) {
      od::value inner;
      if (const auto code = element.get(inner)) return fail(code);
      PLOW_TRY(JsonValue tree, read(inner, depth + 1));
      elements.push_back(std::move(tree));
    }
    return JsonValue(std::move(elements));
  }

  Result<JsonValue> read_object(od::value value, uint32_t depth) {
    od::object object;
    if (const auto code = value.get_object().get(object)) return fail(code);
    JsonValue::Object members;
    for (auto entry : object) {
      od::field field;
      if (const auto code = std::move(entry).get(field)) return fail(code);
      std::string_view key;
      if (const auto code = field.unescaped_key().get(key)) return fail(code);
      JsonMember member{std::string(key), {}};
      PLOW_TRY(member.value, read(field.value(), depth + 1));
      members.push_back(std::move(member));
    }
    PLOW_TRY_STATUS(check_keys(members));
    if (const auto number = wrapped_float(members)) return JsonValue(*number);
    return JsonValue(std::move(members));
  }

  // A number or a literal name. simdjson's own numbers end at 64 bits, and published files go beyond
  // ("model_max_length": 1000000000000000019884624838656), and it has no Infinity.
  Result<JsonValue> read_word(std::string_view word) {
    if (word == "true") return JsonValue(true);
    if (word == "false") return JsonValue(false);
    if (word == "null") return JsonValue();
    if (const auto number = named_float(word)) return JsonValue(*number);
    if (!is_number(word)) {
      return input_error(fmt::format("{}: not valid JSON: '{}' is not a value", source_, word.substr(0, 40)));
    }
    const char* const end = word.data() + word.size();
    int64_t integer = 0;
    if (const auto [at, ec] = std::from_chars(word.data(), end, integer);
        ec == std::errc() && at == end && word != "-0") {
      return JsonValue(integer);
    }
    uint64_t natural = 0;
    if (const auto [at, ec] = std::from_chars(word.data(), end, natural); ec == std::errc() && at == end) {
      return JsonValue(natural);
    }
    double real = 0;
    if (std::from_chars(word.data(), end, real).ec != std::errc()) {
      return input_error(
          fmt::format("{}: the number {} is outside the range of a double", source_, word.substr(0, 40)));
    }
    return JsonValue(real);
  }

  Status check_keys(const JsonValue::Object& members) const {
    std::vector<std::string_view> keys;
    keys.reserve(members.size());
    for (const auto& member : members) keys.push_back(member.key);
    std::sort(keys.begin(), keys.end());
    const auto twin = std::adjacent_find(keys.begin(), keys.end());
    if (twin == keys.end()) return {};
    return input_error(fmt::format("{}: the key '{}' stands twice in one object", source_, *twin));
  }

  Error fail(simdjson::error_code code) const {
    std::string where;
    const char* at = nullptr;
    if (document_ != nullptr && document_->current_location().get(at) == simdjson::SUCCESS)
      where = " near " + quote(at);
    return input_error(
        fmt::format("{}: not valid JSON{}: {}", source_, where, simdjson::error_message(code)));
  }

  // Up to 30 bytes of the document. `at` points into simdjson's padded copy, which ends in zeros.
  static std::string quote(const char* at) {
    std::string text;
    for (; text.size() < 30 && *at != '\0'; ++at) text += *at >= ' ' && *at <= '~' ? *at : ' ';
    return "`" + text + "`";
  }

  std::string_view text_;
  const std::string& source_;
  const JsonLimits& limits_;
  od::document* document_ = nullptr;
  size_t n_values_ = 0;
};

}  // namespace

Result<JsonValue> parse_json(std::string_view text, const std::string& source, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return input_error(fmt::format("{}: {} bytes of JSON, more than the {} that are read here", source,
                                   text.size(), limits.max_bytes));
  }
  return TreeBuilder(text, source, limits).build();
}

}  // namespace plow
