#include "runtime/gpu_driver.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace plow {

Result<double> median_read_rate(uint64_t bytes, const std::function<Status()>& read) {
  std::vector<double> rates;
  constexpr int kRepeats = 9;  // the first warms up
  for (int i = 0; i < kRepeats; ++i) {
    const auto began = std::chrono::steady_clock::now();
    PLOW_TRY_STATUS(read());
    if (i > 0)
      rates.push_back(static_cast<double>(bytes) /
                      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

}  // namespace plow
