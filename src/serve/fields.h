// The fields of a request's body as a table: what validates a request is what /openapi.json is made of.
#pragma once

#include "serve/api_error.h"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

enum class FieldType : uint8_t {
  kBoolean,
  kInteger,
  kNumber,
  kString,
  kObject,
  kArray,
  kStrings,  // one string or an array of strings
  kIds,      // array of token ids
  kTextOrArray,
  kPrompt,  // string, array of strings, array of ids, array of arrays of ids
  kAny,
};

enum class Support : uint8_t {
  kSupported,
  kIgnored,  // accepted and not used: it does not change the answer
  kRefused,  // it would change the answer, and is not there: an error unless its value says "nothing"
};

struct Field {
  const char* name;
  FieldType type;
  Support support;
  const char* meaning;
  double least = 0, most = 0;      // of numbers, both allowed; equal: any
  const char* harmless = nullptr;  // of a refused one: JSON text of a value that is accepted beside null,
                                   // false, 0, "", [] and {}
  bool required = false;
};

struct FieldTable {
  const char* name;  // of the schema in /openapi.json: "ChatCompletionRequest"
  std::vector<Field> fields;
  std::vector<const char*> one_of = {};  // fields of which exactly one must be there
};

// The first field, in the table's order, that is of another type, out of its range, refused or missing. Null
// stands for absent. Names of fields that the table does not know are appended to `unknown`.
std::optional<ApiError> check_fields(const FieldTable& table, const boost::json::object& body,
                                     std::vector<std::string>& unknown);

// The JSON Schema of a body.
boost::json::object field_schema(const FieldTable& table);

// A body that passed check_fields(), read by field. Null stands for absent.
class FieldReader {
 public:
  explicit FieldReader(const boost::json::object& body) : body_(body) {}

  const boost::json::value* find(std::string_view name) const;  // null when absent
  std::optional<double> number(std::string_view name) const;
  std::optional<uint32_t> count(std::string_view name) const;  // REQUIRES a range within 32 bits
  std::optional<bool> boolean(std::string_view name) const;
  std::vector<std::string> strings(std::string_view name) const;  // of kStrings
  // Errors (kIds): an id that the vocabulary does not have.
  std::optional<ApiError> ids(std::string_view name, uint32_t vocab, std::vector<uint32_t>& out) const;

 private:
  const boost::json::object& body_;
};

// A string of an object; empty where there is none of that name.
std::string_view text_at(const boost::json::object& object, std::string_view key);

// Token ids of a JSON array. Errors: something else than an id below `vocab`; `name` is the field.
std::optional<ApiError> read_ids(const boost::json::value& array, std::string_view name, uint32_t vocab,
                                 std::vector<uint32_t>& out);

}  // namespace plow
