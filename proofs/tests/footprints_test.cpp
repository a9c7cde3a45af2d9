// The tile rules of src/ops against those that the proofs were made with, over random instances of every
// operator.
#include "ops/test_instance.h"
#include "ops/tile_rule.h"
#include "verifier.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace plow {
namespace {

constexpr size_t kRounds = 60;  // instances of each operator that fit, and as many that were spoilt

struct Instance {
  Op op;
  std::array<uint32_t, kPacketImmediates> attributes{};
  std::vector<OperandShape> operands;
  uint32_t col_begin = 0, col_end = 0;

  OpInstance view() const { return {op, attributes, operands}; }
};

Instance instance_of(const TestInstance& test) {
  Instance instance{test.op, test.attributes, {}};
  const auto add = [&](const Shape& shape) {
    instance.operands.push_back({shape.row_kind, shape.rows, shape.cols});
  };
  for (const ValueType& input : test.inputs) add(input.shape);
  add(test.output().shape);
  return instance;
}

// One number of it is another: it may still fit, or not.
Instance spoilt(Instance instance, std::mt19937& random) {
  OperandShape& operand = instance.operands[random() % instance.operands.size()];
  const uint32_t number = static_cast<uint32_t>(random() % 40);
  switch (random() % 4) {
    case 0:
      operand.cols = number;
      break;
    case 1:
      operand.rows = number;
      break;
    case 2:
      operand.row_kind = static_cast<Rows>(random() % 3);
      break;
    default:
      instance.attributes[random() % 2] = number;
  }
  return instance;
}

// Column tiles at random, when the instance fits.
void choose_columns(Instance& instance, std::mt19937& random) {
  const uint32_t unit = tile_rule(instance.op)->column_unit(instance.view());
  if (unit == 0) return;
  const uint32_t cols = instance.operands.back().cols;
  const uint32_t tiles = (cols + unit - 1) / unit, first = static_cast<uint32_t>(random() % tiles);
  instance.col_begin = first * unit;
  instance.col_end =
      std::min(cols, instance.col_begin + unit * (1 + static_cast<uint32_t>(random() % (tiles - first))));
}

std::string question(const Instance& i) {
  std::string line = fmt::format("{} {} {}", static_cast<int>(i.op), i.col_begin, i.col_end);
  for (const uint32_t a : i.attributes) line += fmt::format(" {}", a);
  line += fmt::format(" {}", i.operands.size());
  for (const OperandShape& o : i.operands)
    line += fmt::format(" {} {} {}", static_cast<int>(o.row_kind), o.rows, o.cols);
  return line + "\n";
}

std::vector<std::string> expected(const Instance& i) {
  const TileRule* rule = tile_rule(i.op);
  const uint32_t unit = rule->column_unit(i.view());
  std::vector<std::string> lines = {fmt::format("op {} arity {} unit {} kind {}", static_cast<int>(i.op),
                                                rule->n_operands, unit,
                                                static_cast<int>(instance_rows(i.view())))};
  if (unit == 0) return lines;
  std::vector<Access> accesses;
  rule->footprint(i.view(), i.col_begin, i.col_end, accesses);
  for (const Access& a : accesses) {
    const std::string rows = a.rows == RowAccess::kTile  ? "tile"
                             : a.rows == RowAccess::kAll ? "all"
                                                         : fmt::format("fixed {} {}", a.row_begin, a.row_end);
    lines.push_back(fmt::format("  {} {} {} {} {}", a.operand, a.writes ? "writes" : "reads", rows,
                                a.col_begin, a.col_end));
  }
  return lines;
}

TEST(Footprints, OfTheProofsAreThoseOfTheOperators) {
  std::mt19937 random(7);
  std::string questions;
  std::vector<std::string> answers;
  std::map<Op, size_t> fitting;
  for (size_t round = 0; round < kRounds; ++round) {
    for (const TestInstance& test : random_instances(random)) {
      const Instance good = instance_of(test);
      for (Instance instance : {good, spoilt(good, random)}) {
        choose_columns(instance, random);
        fitting[instance.op] += instance.col_end > 0;
        questions += question(instance);
        for (std::string& line : expected(instance)) answers.push_back(std::move(line));
      }
    }
  }
#define PLOW_OP(number, Name, text) EXPECT_GE(fitting[Op::k##Name], kRounds) << #text << ": not compared";
#include "abi/ops.def"
  const std::vector<std::string> said = verifier_lines("--footprints", questions);
  ASSERT_EQ(said.size(), answers.size());
  for (size_t i = 0; i < said.size(); ++i) ASSERT_EQ(said[i], answers[i]) << "line " << i;
}

}  // namespace
}  // namespace plow
