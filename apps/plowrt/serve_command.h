// plowrt serve: a bundle behind HTTP. plowrt ps: what a server does.
#pragma once

#include "base/error.h"
#include "runtime/engine.h"
#include "serve/http_server.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace plow {

struct ServeOptions {
  std::filesystem::path bundle;
  EngineOptions engine;
  HttpServerOptions http;
  uint32_t queue = 256;         // requests that may wait
  uint32_t steps_at_once = 8;   // decode steps without the host when one answer runs alone
  uint32_t drain_seconds = 30;  // for what runs when the server is told to stop
  std::string api_key, served_name;
  bool log_json = false;
  bool share_prefixes = true;  // requests that begin alike share their cache
};

// Returns when a signal has ended the server and all answers.
Status serve_command(const ServeOptions& options);

struct PsOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;
  std::string api_key;
  bool json = false;
};
Status ps_command(const PsOptions& options);

}  // namespace plow
