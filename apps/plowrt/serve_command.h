// plowrt serve: bundles behind HTTP. plowrt ps: what a server does. plowrt load, unload: which of its models
// are in memory.
#pragma once

#include "base/error.h"
#include "runtime/engine.h"
#include "serve/http_server.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace plow {

struct ServeOptions {
  std::vector<std::string> bundles;  // at least one
  EngineOptions engine;
  HttpServerOptions http;
  uint32_t queue = 256;         // requests that may wait
  uint32_t steps_at_once = 8;   // decode steps without the host when one answer runs alone
  uint32_t drain_seconds = 30;  // for what runs when the server is told to stop
  std::string api_key;
  std::vector<std::string> served_names;  // by bundle; as compiled where there are fewer
  uint64_t memory = 0;                    // bytes for all models that are loaded at once; 0: what is free
  std::string control;                    // path of the socket for status, load and unload; empty: none
  bool log_json = false;
  bool share_prefixes = true;  // requests that begin alike share their cache
};

// Returns when a signal has ended the server and all answers.
Status serve_command(const ServeOptions& options);

struct PsOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;
  std::string api_key;
  std::string control;  // a path: ask there instead
  std::string model;    // of load and unload
  bool json = false;
};
Status ps_command(const PsOptions& options);
Status residency_command(const PsOptions& options, const char* verb);  // "load" or "unload"

}  // namespace plow
