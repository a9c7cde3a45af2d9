#include "cost/cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace plow {
namespace {

std::mt19937 bits(7);
double uniform(double low, double high) { return low + (high - low) * (static_cast<double>(bits()) / 4294967296.0); }
double log_uniform(double low, double high) { return std::exp(uniform(std::log(low), std::log(high))); }

// Any figures at all, also such that disagree: larger that was measured to be faster.
Part random_part() {
  Part part;
  part.name = "random";
  for (double& figure : part.figures) figure = log_uniform(0.05, 200);
  part[Figure::kOverlap] = uniform(0, 1);
  return part;
}

Load random_load() {
  Load load;
  load.weights = Bytes(log_uniform(1, 1e8));
  load.products = Flops(log_uniform(1, 1e10));
  load.product_rows = std::floor(log_uniform(1, 600));
  load.wide = uniform(0, 1) < 0.5;
  load.kv = Bytes(log_uniform(1, 1e7));
  load.pairs = log_uniform(1, 1e6);
  load.queries = log_uniform(1, 64);
  load.head_columns = std::floor(log_uniform(16, 256));
  load.inputs = Bytes(log_uniform(1, 1e6));
  for (RowWork& work : load.row_wise) work = {Runs(log_uniform(1, 1e4)), Elements(log_uniform(1, 1e6))};
  for (RowWork& work : load.prologue) work = {Runs(log_uniform(1, 1e4)), Elements(log_uniform(1, 1e6))};
  return load;
}

TEST(Cost, GrowsWithEveryPartOfALoad) {
  const std::function<void(Load&, double)> grow[] = {
      [](Load& l, double f) { l.weights = l.weights * f; },
      [](Load& l, double f) { l.products = l.products * f; },
      [](Load& l, double f) { l.kv = l.kv * f; },
      [](Load& l, double f) { l.pairs *= f; },
      [](Load& l, double f) { l.head_columns *= f; },
      [](Load& l, double f) { l.inputs = l.inputs * f; },
      [](Load& l, double f) { l.row_wise[bits() % l.row_wise.size()].elements += Elements(f); },
      [](Load& l, double f) { l.row_wise[bits() % l.row_wise.size()].runs += Runs(f); },
      [](Load& l, double f) { l.prologue[bits() % l.prologue.size()].elements += Elements(f); },
      // More rows pass the same weights, more queries the same positions.
      [](Load& l, double f) { l.products = l.products * f, l.product_rows *= f; },
      [](Load& l, double f) { l.pairs *= f, l.queries *= f; },
  };
  for (int i = 0; i < 4000; ++i) {
    const Part part = random_part();
    const Load load = random_load();
    const Surroundings around{Bytes(log_uniform(1, 1e10)), uniform(0, 1), uniform(0, 1)};
    for (size_t g = 0; g < std::size(grow); ++g) {
      Load more = load;
      grow[g](more, uniform(1, 3));
      EXPECT_GE(load_time(part, more, around).value, load_time(part, load, around).value * (1 - 1e-12))
          << "part " << g << " of the load";
    }
  }
}

TEST(Cost, GrowsWithWhatIsAround) {
  for (int i = 0; i < 4000; ++i) {
    const Part part = random_part();
    const Load load = random_load();
    const Surroundings around{Bytes(log_uniform(1, 1e10)), uniform(0, 1), uniform(0, 1)};
    const double time = load_time(part, load, around).value * (1 - 1e-12);
    Surroundings larger = around, busier = around, further = around;
    larger.working_set = around.working_set * uniform(1, 10);
    busier.streaming = uniform(around.streaming, 1);
    further.remote = uniform(around.remote, 1);
    EXPECT_GE(load_time(part, load, larger).value, time);
    EXPECT_GE(load_time(part, load, busier).value, time);
    EXPECT_GE(load_time(part, load, further).value, time);
  }
}

ValueType activation(uint32_t cols) { return {DType::kF32, {Rows::kTokens, 1, cols}}; }
ValueType stored(uint32_t rows, uint32_t cols) { return {DType::kBf16, {Rows::kFixed, rows, cols}}; }

TEST(Cost, GrowsWithRowsContextAndSequences) {
  const Part part = default_part(Isa::kX86_64);
  const std::vector<ValueType> product = {activation(576), stored(1536, 576)};
  const std::vector<ValueType> attention = {activation(576), {DType::kBf16, {Rows::kFixed, 1, 192}}};
  const std::vector<ValueType> norm = {activation(576), stored(1, 576)};
  const auto time = [&](Op op, const std::vector<ValueType>& in, uint32_t cols, Attributes attributes,
                        const StepSize& size) {
    return load_time(part, op_load(op, in, activation(cols), attributes, size), {}).value;
  };
  for (double rows = 1; rows < 600; ++rows) {
    const StepSize less{rows, 1, 100, 1}, more{rows + 1, 1, 100, 1};
    EXPECT_LE(time(Op::kLinear, product, 1536, {}, less), time(Op::kLinear, product, 1536, {}, more)) << rows;
    EXPECT_LE(time(Op::kAttention, attention, 576, {64}, less),
              time(Op::kAttention, attention, 576, {64}, more))
        << rows;
    EXPECT_LE(time(Op::kRmsNorm, norm, 576, {0, 0, 576}, less),
              time(Op::kRmsNorm, norm, 576, {0, 0, 576}, more))
        << rows;
    const StepSize further{rows, 1, 150, 1};
    EXPECT_LE(time(Op::kAttention, attention, 576, {64}, less),
              time(Op::kAttention, attention, 576, {64}, further))
        << rows;
    EXPECT_LE(time(Op::kAttention, attention, 576, {64, 32}, less),
              time(Op::kAttention, attention, 576, {64}, less))
        << "a window";
  }
}

TEST(Cost, OfAProductIsTheRoofline) {
  Part part = default_part(Isa::kX86_64);
  part[Figure::kOverlap] = 0;
  part[Figure::kPacket] = 0.001;
  part[Figure::kReadFarAll] = part[Figure::kReadFarAlone] = 10;  // B/ns
  for (const Figure figure :
       {Figure::kReadSmallAll, Figure::kReadSmallAlone, Figure::kReadMiddleAll, Figure::kReadMiddleAlone})
    part[figure] = 20;
  part[Figure::kMatrixBf16At1] = part[Figure::kMatrixBf16At2] = part[Figure::kMatrixBf16At4] = 40;  // flop/ns
  const auto time = [&](double rows, double working_set) {
    const std::vector<ValueType> in = {activation(1000), stored(1000, 1000)};
    Surroundings around;
    around.working_set = Bytes(working_set);
    return load_time(part, op_load(Op::kLinear, in, activation(1000), {}, {rows, 1, 0, 1}), around).value;
  };
  EXPECT_NEAR(time(1, 1e9), 2e6 / 10, 1) << "one row streams two million bytes";
  EXPECT_NEAR(time(1, 1e3), 2e6 / 20, 1) << "faster from a cache";
  EXPECT_NEAR(time(4, 1e3), 8e6 / 40, 1) << "four rows compute eight million operations";
}

TEST(Cost, OfAnEmbeddingIsThatOfTheRowsPicked) {
  const std::vector<ValueType> in = {stored(262144, 640), {DType::kU32, {Rows::kTokens, 1, 1}}};
  const Load load = op_load(Op::kEmbed, in, activation(640), {}, {3, 1, 0, 1});
  const RowWork& work = load.row_wise[static_cast<size_t>(RowBody::kCopy)];
  EXPECT_EQ(work.runs.value, 3);
  EXPECT_EQ(work.elements.value, 3 * 640);
}

TEST(Cost, SharesAddUp) {
  const Part part = default_part(Isa::kX86_64);
  Load load = random_load();
  load.prologue = {};
  load.inputs = Bytes(0);
  const double packet = part[Figure::kPacket];
  const double whole = load_time(part, load, {}).value - packet;
  const double parts = load_time(part, share_of(load, 0.25), {}).value +
                       load_time(part, share_of(load, 0.75), {}).value - 2 * packet;
  EXPECT_NEAR(whole, parts, 1e-6 * whole);
}

TEST(Part, ThatShipsIsWhole) {
  for (const Part& part : known_parts()) {
    EXPECT_TRUE(check_part(part).ok()) << check_part(part).error().message;
    EXPECT_EQ(find_part(part.name), &part);
  }
  EXPECT_EQ(find_part("no such part"), nullptr);
}

TEST(Part, WithAFigureThatIsNoneIsRefusedByName) {
  Part part = default_part(Isa::kX86_64);
  part[Figure::kHop] = -1;
  ASSERT_FALSE(check_part(part).ok());
  EXPECT_NE(check_part(part).error().message.find("Hop"), std::string::npos);
}

}  // namespace
}  // namespace plow
