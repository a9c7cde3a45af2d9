#include "serve/http.h"

#include <algorithm>
#include <cctype>

namespace plow {

std::string_view HttpRequest::field(std::string_view name) const {
  const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  for (const HttpField& each : fields) {
    if (std::ranges::equal(each.name, name, same)) return each.value;
  }
  return {};
}

}  // namespace plow
