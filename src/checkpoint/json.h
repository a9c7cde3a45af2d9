// A bounded reader of JSON documents of unknown origin (config.json, generation_config.json, the headers of
// safetensors files, tokenizer.json) on top of simdjson. parse_json() gives a plain tree of values;
// JsonReader reads an object of that tree field by field, with messages that name the file and the field, and
// remembers which fields were asked for, so that a model family can refuse a configuration that says
// something it does not understand.
//
// Beyond RFC 8259, because published files have them: the bare numbers Infinity, -Infinity and NaN, and the
// object
// {"__float__":"Infinity"} (also "-Infinity" and "NaN") of transformers 5, which reads as the number.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <variant>
#include <vector>

namespace plow {

struct JsonMember;

// One value; arrays and objects own what they hold. Members keep the order of the document.
class JsonValue {
 public:
  using Array = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;

  JsonValue();  // null
  JsonValue(bool value);
  JsonValue(int64_t value);
  // Kept as int64_t when it fits, so that an integer has one form.
  JsonValue(uint64_t value);
  JsonValue(double value);
  JsonValue(std::string value);
  JsonValue(const char* value);
  JsonValue(Array value);
  JsonValue(Object value);

  bool is_null() const { return std::holds_alternative<std::monostate>(state_); }

  // Null when the value is of another kind.
  const bool* as_bool() const { return std::get_if<bool>(&state_); }
  const int64_t* as_int() const { return std::get_if<int64_t>(&state_); }
  const std::string* as_string() const { return std::get_if<std::string>(&state_); }
  const Array* as_array() const { return std::get_if<Array>(&state_); }
  const Object* as_object() const { return std::get_if<Object>(&state_); }
  // Any number. Integers above 2^53 round to the nearest double; integers above 2^64 are read as doubles.
  std::optional<double> as_number() const;
  // An integer from 0 to 2^64 - 1.
  std::optional<uint64_t> as_uint() const;

  // The member of that name; null when there is none or this is no object. Looks at each member in turn: for
  // tables of thousands of entries (a vocabulary) walk as_object() instead.
  const JsonValue* find(std::string_view key) const;

  // What messages quote: the JSON text of the value, cut to about 60 characters.
  std::string brief() const;

  // Same kind, same value (1 and 1.0 differ; NaN equals NaN), objects in the same order.
  bool operator==(const JsonValue& other) const;

 private:
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Array, Object> state_;
};

struct JsonMember {
  std::string key;
  JsonValue value;

  bool operator==(const JsonMember&) const = default;
};

struct JsonLimits {
  size_t max_bytes = size_t{256} << 20;  // the largest tokenizer.json in use has about 40 MB
  uint32_t max_depth = 64;               // the deepest published file (tokenizer.json) nests less than 16
  size_t max_values = size_t{16} << 20;  // a tokenizer of 262,144 tokens and 514,906 merges has 2 million
};

// The tree of one document, whose root must be an object or an array.
// Errors (kInput, beginning with `source`): not JSON, not UTF-8, a key twice in one object, a number that a
// double cannot hold, a limit passed.
Result<JsonValue> parse_json(std::string_view text, const std::string& source, const JsonLimits& limits = {});

// The JSON text of a value: one line, no spaces, members in order, numbers that read back to the same value.
// Infinity and NaN are written as {"__float__":...}.
std::string to_json(const JsonValue& value);

class JsonFields;

// Reads one tree and remembers what was read. Not copied or moved, as JsonFields point to it.
//
//   JsonReader reader(checkpoint.config, "config.json");
//   PLOW_TRY(auto config, reader.root());
//   PLOW_TRY(const int64_t hidden_size, config.positive("hidden_size"));
//   config.ignore({"torch_dtype", "use_cache"});
//   PLOW_TRY_STATUS(reader.check_all_read());
class JsonReader {
 public:
  // REQUIRES that `tree` outlives the reader. `source` begins every message.
  JsonReader(const JsonValue& tree, std::string source) : tree_(tree), source_(std::move(source)) {}
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  // Errors (kInput): the root is not an object.
  Result<JsonFields> root();

  // Paths of the fields that nobody asked for ("rope_scaling.attn_factor"), in the order of the document. A
  // field that was read as a whole (JsonFields::find) counts with all that is below it; one that was entered
  // (object(), objects()) is looked at field by field.
  std::vector<std::string> unread() const;

  // Errors (kInput): names every field of unread(), with its value.
  Status check_all_read() const;

 private:
  friend class JsonFields;

  const JsonValue& tree_;
  std::string source_;
  std::unordered_set<const JsonValue*> read_;     // asked for
  std::unordered_set<const JsonValue*> entered_;  // objects whose fields are read one by one
};

// A cursor on one object of a JsonReader's tree: cheap to copy, valid while the reader lives.
// Every getter marks its field as read. A getter whose name ends in _or gives the default when the field is
// absent or null; the others call that an error. Errors are kInput and read like
//   config.json: 'rope_scaling.factor' must be a number, found "x"
//   config.json: 'hidden_size' is missing; it must be a positive integer
class JsonFields {
 public:
  bool has(std::string_view key) const;  // present and not null; does not mark it as read

  // The value as it stands (null when absent); it counts as understood with all that is below it.
  const JsonValue* find(std::string_view key) const;

  Result<bool> boolean(std::string_view key) const;
  Result<bool> boolean_or(std::string_view key, bool absent) const;

  // An integer from `least` to `most`. 4096.0 is not an integer.
  Result<int64_t> integer(std::string_view key, int64_t least, int64_t most) const;
  Result<int64_t> integer_or(std::string_view key, int64_t absent, int64_t least, int64_t most) const;
  // From 1 to 2^31 - 1: the bound of every dimension of a model, so that products of two of them cannot
  // overflow.
  Result<int64_t> positive(std::string_view key) const { return integer(key, 1, kMaxDimension); }
  Result<int64_t> positive_or(std::string_view key, int64_t absent) const {
    return integer_or(key, absent, 1, kMaxDimension);
  }

  // A number, whole or not; finite unless the value itself is what the caller asks for with find().
  Result<double> number(std::string_view key) const;
  Result<double> number_or(std::string_view key, double absent) const;

  Result<std::string> string(std::string_view key) const;
  Result<std::string> string_or(std::string_view key, std::string absent) const;

  Result<std::vector<int64_t>> integers(std::string_view key) const;
  Result<std::vector<double>> numbers(std::string_view key) const;
  Result<std::vector<std::string>> strings(std::string_view key) const;

  // An object entered to be read field by field, or the objects of an array.
  Result<JsonFields> object(std::string_view key) const;
  Result<std::optional<JsonFields>> object_or_none(std::string_view key) const;
  Result<std::vector<JsonFields>> objects(std::string_view key) const;

  // Fields that are known and do not change the result; absent ones are no error.
  void ignore(std::initializer_list<std::string_view> keys) const;

  // The error that a field is not what it must be: "SOURCE: 'PATH.key' must be WHAT, found VALUE".
  Error error(std::string_view key, std::string_view must_be) const;
  // "SOURCE: MESSAGE", for what concerns several fields.
  Error error(std::string_view message) const;

  const JsonValue& value() const { return *object_; }

  static constexpr int64_t kMaxDimension = std::numeric_limits<int32_t>::max();

 private:
  friend class JsonReader;
  JsonFields(JsonReader* reader, const JsonValue* object, std::string path)
      : reader_(reader), object_(object), path_(std::move(path)) {}

  JsonReader* reader_;
  const JsonValue* object_;
  std::string path_;  // "" at the root, else "rope_scaling."
};

}  // namespace plow
