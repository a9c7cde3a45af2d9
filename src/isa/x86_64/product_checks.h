// What the tests of products share. A Problem has rows, n, rig(row_tile), and in its rig the output is
// operand 2.
#pragma once

#include "isa/x86_64/body_rig.h"

#include <gtest/gtest.h>

namespace plow {

// The output is within its bound of what exact(row, column, value, bound) says, and nothing else was written.
template <class Problem, class Exact>
void expect_near(const Problem& problem, BodyRig& rig, const std::vector<float>& before, const Exact& exact) {
  std::vector<float> after = rig.arena;
  for (uint32_t r = 0; r < problem.rows; ++r) {
    for (uint32_t c = 0; c < problem.n; ++c) {
      double value, bound;
      exact(r, c, value, bound);
      const size_t at = static_cast<size_t>(rig.row(rig.packet.operand[2], r) + c - rig.arena.data());
      ASSERT_NEAR(static_cast<double>(after[at]), value, bound) << "row " << r << ", column " << c;
      after[at] = before[at];
    }
  }
  EXPECT_EQ(std::memcmp(after.data(), before.data(), after.size() * sizeof(float)), 0)
      << "something else was written";
}

// The same bits in row tiles of every size.
template <class Problem>
void expect_same_in_any_tile(const Problem& together) {
  for (IsaLevel level : available_isa_levels()) {
    BodyRig all = together.rig(64);
    all.run(level);
    for (uint32_t row_tile : {1u, 2u, 3u, 5u, 8u, 16u}) {
      BodyRig few = together.rig(row_tile);
      few.run(level);
      ASSERT_EQ(std::memcmp(all.arena.data(), few.arena.data(), all.arena.size() * sizeof(float)), 0)
          << "row tile " << row_tile;
    }
  }
}

}  // namespace plow
