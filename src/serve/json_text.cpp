#include "serve/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace plow {

void append_json_number(std::string& out, float value) {
  constexpr float kMost = 9999;
  if (value != value) value = -kMost;
  fmt::format_to(std::back_inserter(out), "{}", std::clamp(value, -kMost, kMost));
}

}  // namespace plow
