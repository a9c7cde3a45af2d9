#include "text/chat_template/chat_input_json.h"

#include <boost/json/array.hpp>
#include <fmt/format.h>

#include <array>

namespace plow {
namespace {

bool read_now(const boost::json::value& json, LocalTime& now) {
  std::array<int*, 6> parts = {&now.year, &now.month, &now.day, &now.hour, &now.minute, &now.second};
  if (!json.is_array() || json.get_array().size() != parts.size()) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    const boost::json::value& part = json.get_array()[i];
    if (!part.is_int64() || part.get_int64() < 0 || part.get_int64() > 9999) return false;
    *parts[i] = static_cast<int>(part.get_int64());
  }
  return true;
}

}  // namespace

Result<ChatInput> chat_input_from_json(const boost::json::object& object) {
  ChatInput input;
  for (const auto& [key, value] : object) {
    bool fits = true;
    if (key == "messages") {
      input.messages = value;
    } else if (key == "tools") {
      input.tools = value;
    } else if (key == "documents") {
      input.documents = value;
    } else if (key == "add_generation_prompt") {
      fits = value.is_bool();
      if (fits) input.add_generation_prompt = value.get_bool();
    } else if (key == "special_tokens") {
      fits = value.is_object();
      if (fits) input.special_tokens = value.get_object();
    } else if (key == "variables") {
      fits = value.is_object();
      if (fits) input.variables = value.get_object();
    } else if (key == "now") {
      input.now.emplace();
      fits = read_now(value, *input.now);
    } else {
      return input_error(fmt::format("the input of a chat template has no key '{}'", std::string_view(key)));
    }
    if (!fits) {
      return input_error(
          fmt::format("'{}' in the input of a chat template has the wrong type", std::string_view(key)));
    }
  }
  return input;
}

}  // namespace plow
