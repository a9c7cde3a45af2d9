// The footprints against the references: what a tile does not declare to read does not change it, and what it
// declares does.
#include "ops/test_instance.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace plow {
namespace {

struct Tile {
  uint32_t row_begin, row_end, col_begin, col_end;
};

// A value that differs from the one that is there, in range, and reverses the order of logits.
double changed(const TestInstance& instance, size_t input, double value) {
  if (instance.inputs[input].dtype != DType::kU32) return 0.25 - 1.5 * value;
  return static_cast<uint32_t>(value + 1) % instance.exclusive[input];
}

bool covers(const Access& access, const Tile& tile, uint32_t row, uint32_t col) {
  const bool row_in = access.rows == RowAccess::kAll ||
                      (access.rows == RowAccess::kTile && row >= tile.row_begin && row < tile.row_end) ||
                      (access.rows == RowAccess::kFixed && row >= access.row_begin && row < access.row_end);
  return row_in && col >= access.col_begin && col < access.col_end;
}

// Changes the elements of all inputs for which select(input, row, col) holds.
template <class Select>
TestInstance change(const TestInstance& instance, Select select) {
  TestInstance copy = instance;
  for (size_t i = 0; i < copy.values.size(); ++i) {
    Matrix& value = copy.values[i];
    for (uint32_t r = 0; r < value.rows; ++r) {
      for (uint32_t c = 0; c < value.cols; ++c) {
        if (select(i, r, c)) value.row(r)[c] = changed(instance, i, value.row(r)[c]);
      }
    }
  }
  return copy;
}

bool same_in_tile(const Matrix& a, const Matrix& b, const Tile& tile) {
  for (uint32_t r = tile.row_begin; r < tile.row_end; ++r) {
    for (uint32_t c = tile.col_begin; c < tile.col_end; ++c) {
      if (a.row(r)[c] != b.row(r)[c]) return false;
    }
  }
  return true;
}

OpInstance packet_terms(const TestInstance& instance, std::vector<OperandShape>& operands) {
  for (const ValueType& type : instance.inputs)
    operands.push_back({type.shape.row_kind, type.shape.rows, type.shape.cols});
  const Shape out = instance.output().shape;
  operands.push_back({out.row_kind, out.rows, out.cols});
  return {instance.op, instance.attributes, operands};
}

// Halves of what is read, by columns and by fixed rows: each must matter, or the footprint is too wide. Which
// rows of a table are read, and which logits decide, depends on the data.
std::vector<Access> parts_that_matter(Op op, const Access& whole) {
  if (whole.writes) return {};
  std::vector<Access> parts = {whole};
  if (whole.col_end - whole.col_begin > 1 && op != Op::kSample) {
    const uint32_t middle = (whole.col_begin + whole.col_end) / 2;
    parts.insert(parts.end(), {whole, whole});
    parts[1].col_end = middle;
    parts[2].col_begin = middle;
  }
  if (whole.rows == RowAccess::kFixed && whole.row_end - whole.row_begin > 1 && op != Op::kEmbed) {
    const uint32_t middle = (whole.row_begin + whole.row_end) / 2;
    parts.insert(parts.end(), {whole, whole});
    parts[parts.size() - 2].row_end = middle;
    parts[parts.size() - 1].row_begin = middle;
  }
  return parts;
}

void check_tile(const TestInstance& instance, const Matrix& out, const std::vector<Access>& accesses,
                const Tile& tile) {
  const auto declared = [&](size_t input, uint32_t row, uint32_t col) {
    return std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
      return !access.writes && access.operand == input && covers(access, tile, row, col);
    });
  };
  const TestInstance outside =
      change(instance, [&](size_t i, uint32_t r, uint32_t c) { return !declared(i, r, c); });
  EXPECT_TRUE(same_in_tile(outside.run(), out, tile))
      << op_name(instance.op) << " reads what it does not declare";
  for (const Access& whole : accesses) {
    for (const Access& part : parts_that_matter(instance.op, whole)) {
      const TestInstance inside = change(instance, [&](size_t i, uint32_t r, uint32_t c) {
        return i == part.operand && covers(part, tile, r, c);
      });
      EXPECT_FALSE(same_in_tile(inside.run(), out, tile))
          << op_name(instance.op) << " does not read all that it declares of operand " << int{part.operand};
    }
  }
}

TEST(Footprint, ATileDependsOnWhatItDeclaresToReadAndOnNothingElse) {
  std::mt19937 random(3);
  for (int round = 0; round < 15; ++round) {
    for (const TestInstance& instance : random_instances(random)) {
      std::vector<OperandShape> operands;
      const OpInstance terms = packet_terms(instance, operands);
      const TileRule& rule = *tile_rule(instance.op);
      const Matrix out = instance.run();
      ASSERT_EQ(out.cols, terms.output().cols);
      ASSERT_EQ(out.rows, instance_rows(terms) == Rows::kTokens ? instance.tokens : instance.samples);
      const uint32_t width = rule.column_unit(terms) * (1 + static_cast<uint32_t>(random() % 2));
      const uint32_t row_tile = 1 + static_cast<uint32_t>(random() % 3);
      for (uint32_t c = 0; c < out.cols; c += width) {
        std::vector<Access> accesses;
        const uint32_t col_end = std::min(out.cols, c + width);
        rule.footprint(terms, c, col_end, accesses);
        for (uint32_t r = 0; r < out.rows; r += row_tile) {
          check_tile(instance, out, accesses, {r, std::min(out.rows, r + row_tile), c, col_end});
        }
      }
    }
  }
}

}  // namespace
}  // namespace plow
