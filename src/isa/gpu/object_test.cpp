#include "isa/gpu/object.h"

#include "isa/gpu/carried.h"
#include "isa/gpu/geometry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace plow::gpu {
namespace {

class Object : public testing::TestWithParam<Isa> {};

// The drift guard: what device code was compiled with is what this program was compiled with.
TEST_P(Object, AgreesWithItsHostInEveryNumber) {
  const auto object = interpreter_object(GetParam());
  if (object.empty())
    GTEST_SKIP() << "its compiler was not found when this was built, so there is no " << isa_name(GetParam())
                 << " object";
  const Status status = check_object(object, GetParam());
  EXPECT_TRUE(status.ok()) << status.error().message;
}

TEST_P(Object, WithAnotherNumberIsRefusedByThatNumbersName) {
  const auto object = interpreter_object(GetParam());
  if (object.empty())
    GTEST_SKIP() << "its compiler was not found when this was built, so there is no " << isa_name(GetParam())
                 << " object";
  std::vector<std::byte> bytes(object.begin(), object.end());
  // Block tokens and head width: the words that begin the array.
  const uint32_t begin[] = {kKvBlockTokens, kMaxHeadDim};
  const auto raw = std::as_bytes(std::span(begin));
  const auto found = std::search(bytes.begin(), bytes.end(), raw.begin(), raw.end());
  ASSERT_NE(found, bytes.end());
  found[4] ^= std::byte{1};
  const Status status = check_object(bytes, GetParam());
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("built with MaxHeadDim = 513, this program with 512"),
            std::string::npos)
      << status.error().message;
}

TEST_P(Object, ThatIsCutShortIsRefused) {
  EXPECT_FALSE(check_object({}, GetParam()).ok());
  const auto object = interpreter_object(GetParam());
  for (const size_t bytes : {size_t{10}, size_t{64}, object.size() / 2}) {
    if (bytes >= object.size()) continue;
    EXPECT_FALSE(check_object(object.first(bytes), GetParam()).ok()) << bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Object, testing::Values(Isa::kSm90a, Isa::kSm120, Isa::kGfx942, Isa::kGfx950),
                         [](const auto& one) { return isa_name(one.param); });

}  // namespace
}  // namespace plow::gpu
