#include "base/text_table.h"
#include "plowrt/connection.h"
#include "plowrt/serve_command.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <exception>

namespace plow {

namespace {

namespace json = boost::json;

constexpr size_t kMostBytes = size_t{1} << 20;  // of a status

Error not_plow(const PsOptions& options) {
  if (!options.control.empty()) return input_error(options.control + " is not a plow server's.");
  return input_error(fmt::format("{}:{} is not a plow server.", options.host, options.port));
}

Result<Connection> connect(const PsOptions& options) {
  return options.control.empty() ? Connection::open(options.host, options.port)
                                 : Connection::open_local(options.control);
}

Result<json::value> fetch_status(const PsOptions& options) {
  PLOW_TRY(Connection connection, connect(options));
  const std::string key = options.api_key.empty() ? "" : "Authorization: Bearer " + options.api_key + "\r\n";
  PLOW_TRY(const std::string response,
           connection.exchange(fmt::format("GET /status HTTP/1.0\r\nHost: {}\r\n{}\r\n", options.host, key),
                               kMostBytes));
  const size_t body = response.find("\r\n\r\n");
  if (response.find(" 401 ") == std::string_view("HTTP/1.1").size())
    return usage_error("the server asks for an API key: give --api-key or PLOW_API_KEY.");
  if (response.find(" 200 ") != std::string_view("HTTP/1.1").size() || body == std::string::npos)
    return not_plow(options);
  boost::system::error_code error;
  json::value status = json::parse(std::string_view(response).substr(body + 4), error);
  if (error || !status.is_object() || !status.get_object().contains("models")) return not_plow(options);
  return status;
}

std::string status_table(const json::value& status) {
  TextTable table(
      {"model", "state", ">context", ">running", ">waiting", ">slots", ">cache used", ">tokens", ">memory"});
  for (const json::value& entry : status.at("models").as_array()) {
    const auto number = [&](const char* name) { return entry.at(name).to_number<uint64_t>(); };
    const auto text = [&](const char* name) { return std::string(entry.at(name).as_string()); };
    uint64_t bytes = 0;
    for (const auto& part : entry.at("memory_bytes").as_object()) bytes += part.value().to_number<uint64_t>();
    const uint64_t blocks = number("cache_blocks");  // 0: the model is not in memory
    const uint64_t used = blocks - number("cache_blocks_free");
    table.add_row({text("name"), text("state"), std::to_string(number("context")),
                   std::to_string(number("running")), std::to_string(number("waiting")),
                   std::to_string(number("slots")),
                   blocks == 0 ? "-" : fmt::format("{}%", 100 * used / blocks),
                   std::to_string(number("answer_tokens")), format_bytes(static_cast<double>(bytes))});
  }
  return table.to_string();
}

}  // namespace

Status residency_command(const PsOptions& options, const char* verb) {
  PLOW_TRY(Connection connection, connect(options));
  std::string name;
  for (const char c : options.model) name += fmt::format("%{:02x}", static_cast<unsigned char>(c));
  PLOW_TRY(const std::string response,
           connection.exchange(fmt::format("POST /models/{}/{} HTTP/1.0\r\n\r\n", name, verb), kMostBytes));
  const size_t body = response.find("\r\n\r\n");
  boost::system::error_code error;
  json::value reply;
  if (body != std::string::npos) reply = json::parse(std::string_view(response).substr(body + 4), error);
  if (error || !reply.is_object()) return not_plow(options);
  const json::object& said = reply.get_object();
  if (const json::value* problem = said.if_contains("error"); problem != nullptr && problem->is_string())
    return input_error(fmt::format("{}: {}", options.model, std::string_view(problem->get_string())));
  const json::value* state = said.if_contains("state");
  if (state == nullptr || !state->is_string()) return not_plow(options);
  fmt::print("{}: {}\n", options.model, std::string_view(state->get_string()));
  return {};
}

Status ps_command(const PsOptions& options) {
  PLOW_TRY(const json::value status, fetch_status(options));
  if (options.json) {
    fmt::print("{}\n", json::serialize(status));
    return {};
  }
  std::string table;
  try {
    table = status_table(status);
  } catch (const std::exception&) {  // a field is not there, or of another type
    return not_plow(options);
  }
  fmt::print("{}", table);
  return {};
}

}  // namespace plow
