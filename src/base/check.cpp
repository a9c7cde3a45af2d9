#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace plow {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  fmt::print(stderr, "plow: internal error at {}:{}: {} does not hold: {}\nThis is a bug in plow; please report it.\n",
             file, line, condition, message);
  std::abort();
}

}  // namespace plow
