#include "bundle/predictions.h"

#include <gtest/gtest.h>

namespace plow {
namespace {

std::vector<PredictionGrid> two_grids() {
  return {{0, false, true, {1, 4}, {0, 100}, {10, 20, 40, 60}}, {1, true, false, {64}, {0}, {1000}}};
}

std::string record_of(const std::vector<PredictionGrid>& grids) {
  return boost::json::serialize(
      boost::json::object{{"plow", "0.1.0"}, {"predictions", predictions_to_json(grids)}});
}

TEST(Predictions, ComeBackFromABuildRecord) {
  const auto grids = predictions_of(record_of(two_grids()));
  ASSERT_TRUE(grids.ok()) << grids.error().message;
  ASSERT_EQ(grids->size(), 2u);
  EXPECT_EQ((*grids)[0].ns, two_grids()[0].ns);
  EXPECT_EQ((*grids)[1].rows, two_grids()[1].rows);
  EXPECT_TRUE((*grids)[1].one_sequence);
}

TEST(Predictions, AreLinearBetweenPointsAndConstantBeyond) {
  const auto grids = two_grids();
  const auto at = [&](double rows, double context) {
    return *predicted_ns(grids, {0, rows, context, false, true});
  };
  EXPECT_DOUBLE_EQ(at(1, 0), 10);
  EXPECT_DOUBLE_EQ(at(4, 100), 60);
  EXPECT_DOUBLE_EQ(at(1, 50), 15);
  EXPECT_DOUBLE_EQ(at(2, 0), 20);
  EXPECT_DOUBLE_EQ(at(2, 50), 15 + (50 - 15) / 3.0);
  EXPECT_DOUBLE_EQ(at(9, 1e9), 60);
  EXPECT_DOUBLE_EQ(*predicted_ns(grids, {1, 300, 7, true, false}), 1000);
}

TEST(Predictions, AreNotMadeUpForOtherSteps) {
  EXPECT_FALSE(predicted_ns(two_grids(), {0, 1, 0, true, true}).has_value());
  EXPECT_FALSE(predicted_ns(two_grids(), {2, 1, 0, false, true}).has_value());
  const auto none = predictions_of("{}");
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->empty());
}

TEST(Predictions, ThatAreNoGridsAreRefused) {
  const std::string good = record_of(two_grids());
  for (const auto& [from, to] :
       {std::pair("[1E1,2E1,4E1,6E1]", "[1E1]"), std::pair("\"samples\":true", "\"samples\":1"),
        std::pair("[0E0,1E2]", "[1E2,0E0]"), std::pair("1E3", "-1E3"), std::pair("\"rows\"", "\"row\"")}) {
    std::string bad = good;
    const size_t at = bad.find(from);
    ASSERT_NE(at, std::string::npos) << from << " in " << bad;
    bad.replace(at, std::string(from).size(), to);
    EXPECT_FALSE(predictions_of(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace plow
