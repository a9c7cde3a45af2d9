// plowrt bench startup: how long a server takes from its start to its first answer, again and again, with the
// bundle in the memory of the machine and with the bundle only on its disk.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace plow {

struct StartupBench {
  std::string bundle;
  uint32_t runs = 5;       // with the bundle in memory, and as many without
  uint32_t requests = 10;  // one after the other in each run; no two prompts begin alike
  bool warm_only = false;
  bool json = false;
};

// One start; in seconds, and the first two since the process was started.
struct StartupRun {
  double ready = 0;               // its ready line was there
  double first_token = 0;         // and the first token of its first answer
  std::vector<double> to_tokens;  // by request: from its sending to its first token
};

struct StartupFigure {
  double median = 0, least = 0, most = 0;  // seconds; the median by nearest rank
};
StartupFigure startup_figure(std::vector<double> values);  // REQUIRES values

// Errors: what keeps a server from starting; (kDevice) the bundle does not leave the memory, so no start
// would be cold. No figure is printed then.
Status bench_startup(const StartupBench& bench);

}  // namespace plow
