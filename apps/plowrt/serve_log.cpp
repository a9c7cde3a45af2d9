#include "plowrt/serve_log.h"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <array>

namespace plow {

namespace {

namespace json = boost::json;

// Polled every few seconds by those who watch the server: a line each would bury the rest.
constexpr std::array<std::string_view, 5> kPolled = {"/healthz", "/readyz", "/health", "/metrics", "/status"};

bool is_dull(const RequestRecord& record) {
  return record.status == 200 && std::find(kPolled.begin(), kPolled.end(), record.path) != kPolled.end();
}

json::object request_json(const RequestRecord& record) {
  json::object line{{"event", "request"},
                    {"id", record.id},
                    {"method", record.method},
                    {"path", record.path},
                    {"status", record.status},
                    {"seconds", record.seconds},
                    {"prompt_tokens", record.prompt_tokens},
                    {"answer_tokens", record.answer_tokens}};
  if (record.first_token_seconds > 0) line["first_token_seconds"] = record.first_token_seconds;
  if (!record.note.empty()) line["note"] = record.note;
  return line;
}

// The members of an object without its braces.
std::string members(const json::object& object) {
  const std::string text = json::serialize(object);
  return text.substr(1, text.size() - 2);
}

// A client chooses the path and the id: what could break a line or a terminal is not printed.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 256)) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return out;
}

std::string request_text(const RequestRecord& record) {
  std::string line = fmt::format("{} {} {} in {:.3f} s", printable(record.method), printable(record.path),
                                 record.status, record.seconds);
  if (record.prompt_tokens > 0) {
    line += fmt::format(", {} + {} tokens, the first after {:.3f} s", record.prompt_tokens,
                        record.answer_tokens, record.first_token_seconds);
  }
  if (!record.note.empty()) line += " (" + printable(record.note) + ")";
  return line + " " + record.id;
}

}  // namespace

StderrLog::StderrLog(bool as_json)
    : json_(as_json),
      logger_(std::make_unique<spdlog::logger>("plowrt", std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  // In JSON the message is the rest of an object.
  logger_->set_pattern(as_json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})"
                               : "%Y-%m-%d %H:%M:%S.%e %l %v");
}

StderrLog::~StderrLog() = default;

void StderrLog::request(const RequestRecord& record) {
  if (is_dull(record)) return;
  const auto level = record.status >= 500 ? spdlog::level::warn : spdlog::level::info;
  logger_->log(level, "{}", json_ ? members(request_json(record)) : request_text(record));
}

void StderrLog::warn(std::string_view text) {
  logger_->warn("{}", json_ ? members({{"event", "warning"}, {"text", text}}) : std::string(text));
}

void StderrLog::say(std::string_view text) {
  logger_->info("{}", json_ ? members({{"event", "server"}, {"text", text}}) : std::string(text));
}

}  // namespace plow
