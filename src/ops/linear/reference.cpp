#include "ops/linear/reference.h"

#include <array>

namespace plow {
namespace {

// Eight partial sums, so that the compiler may use vectors: the order of the sum is fixed, but not left to
// right.
double dot(const double* a, const double* b, uint32_t n) {
  constexpr uint32_t kLanes = 8;
  std::array<double, kLanes> sums{};
  uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  double total = 0;
  for (; i < n; ++i) total += a[i] * b[i];
  for (double sum : sums) total += sum;
  return total;
}

}  // namespace

// A weight row is widened once and used by all rows of x: a real model's matrices come through the cache
// once.
Matrix product(const Matrix& x, const Matrix& weight, uint32_t k_begin, uint32_t k_end) {
  Matrix out(x.rows, weight.rows);
  std::vector<double> row(k_end - k_begin);
  for (uint32_t n = 0; n < weight.rows; ++n) {
    for (uint32_t c = k_begin; c < k_end; ++c) row[c - k_begin] = weight.element(n, c);
    for (uint32_t r = 0; r < x.rows; ++r)
      out.row(r)[n] = dot(x.row(r) + k_begin, row.data(), k_end - k_begin);
  }
  return out;
}

}  // namespace plow
