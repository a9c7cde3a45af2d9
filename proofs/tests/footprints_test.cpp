// The tile rules of src/ops against those that the proofs were made with, over random instances of every operator.
#include "ops/tile_rule.h"
#include "verifier.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace plow {
namespace {

constexpr Op kOps[] = {
#define PLOW_OP(number, Name, text) Op::k##Name,
#include "abi/ops.def"
};
constexpr size_t kInstances = 400;  // of each operator

struct Instance {
  Op op;
  std::array<uint32_t, kPacketImmediates> attributes{};
  std::vector<OperandShape> operands;
  uint32_t col_begin = 0, col_end = 0;

  OpInstance view() const { return {op, attributes, operands}; }
};

// Shapes that an operator may well have: few different numbers, so that many of them fit.
Instance random_instance(Op op, std::mt19937& random) {
  const auto any = [&](std::initializer_list<uint32_t> of) { return of.begin()[random() % of.size()]; };
  Instance instance{op, {}, {}};
  const uint32_t head_dim = any({4, 6, 8});
  const uint32_t heads = any({1, 2, 4, 6}), kv_heads = any({1, 2});
  const uint32_t cols = any({16, 40, head_dim * heads, head_dim * heads}), inner = any({cols, 24, 16});
  instance.attributes = {any({head_dim, 0, 2}), any({0, 8, inner, cols}), any({head_dim, cols, 0, 1}), any({0, 1, 2}), 0};
  const uint32_t n = tile_rule(op)->n_operands;
  for (uint32_t i = 0; i < n; ++i) {
    const Rows kind = static_cast<Rows>(random() % 3);
    instance.operands.push_back({kind, kind == Rows::kFixed ? any({1, cols, inner}) : 32,
                                 any({cols, cols, inner, 1, head_dim, head_dim / 2 * 2, kv_heads * head_dim, cols / 2})});
  }
  return instance;
}

std::string question(const Instance& i) {
  std::string line = fmt::format("{} {} {}", static_cast<int>(i.op), i.col_begin, i.col_end);
  for (const uint32_t a : i.attributes) line += fmt::format(" {}", a);
  line += fmt::format(" {}", i.operands.size());
  for (const OperandShape& o : i.operands) line += fmt::format(" {} {} {}", static_cast<int>(o.row_kind), o.rows, o.cols);
  return line + "\n";
}

std::vector<std::string> expected(const Instance& i) {
  const TileRule* rule = tile_rule(i.op);
  const uint32_t unit = rule->column_unit(i.view());
  std::vector<std::string> lines = {fmt::format("op {} arity {} unit {} kind {}", static_cast<int>(i.op), rule->n_operands, unit,
                                                static_cast<int>(instance_rows(i.view())))};
  if (unit == 0) return lines;
  std::vector<Access> accesses;
  rule->footprint(i.view(), i.col_begin, i.col_end, accesses);
  for (const Access& a : accesses) {
    const std::string rows = a.rows == RowAccess::kTile  ? "tile"
                             : a.rows == RowAccess::kAll ? "all"
                                                         : fmt::format("fixed {} {}", a.row_begin, a.row_end);
    lines.push_back(fmt::format("  {} {} {} {} {}", a.operand, a.writes ? "writes" : "reads", rows, a.col_begin, a.col_end));
  }
  return lines;
}

TEST(Footprints, OfTheProofsAreThoseOfTheOperators) {
  std::mt19937 random(7);
  std::string questions;
  std::vector<std::string> answers;
  std::map<Op, size_t> fitting;
  for (const Op op : kOps) {
    for (size_t tries = 0, kept = 0; kept < kInstances && tries < 400 * kInstances; ++tries) {
      Instance instance = random_instance(op, random);
      const uint32_t unit = tile_rule(op)->column_unit(instance.view());
      if (unit == 0 && tries % 200 != 0) continue;  // some that do not fit, too
      const uint32_t cols = instance.operands.back().cols;
      if (unit > 0) {
        const uint32_t tiles = (cols + unit - 1) / unit, first = static_cast<uint32_t>(random() % tiles);
        instance.col_begin = first * unit;
        instance.col_end = std::min(cols, instance.col_begin + unit * (1 + static_cast<uint32_t>(random() % (tiles - first))));
        ++fitting[op];
        ++kept;
      }
      questions += question(instance);
      for (std::string& line : expected(instance)) answers.push_back(std::move(line));
    }
    EXPECT_GE(fitting[op], kInstances / 10) << op_name(op) << ": too few instances fit to compare";
  }
  const std::vector<std::string> said = verifier_lines("--footprints", questions);
  ASSERT_EQ(said.size(), answers.size());
  for (size_t i = 0; i < said.size(); ++i) ASSERT_EQ(said[i], answers[i]) << "line " << i;
}

}  // namespace
}  // namespace plow
