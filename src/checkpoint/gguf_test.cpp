#include "checkpoint/gguf.h"

#include "checkpoint/testing/files.h"

#include <gtest/gtest.h>

namespace plow {
namespace {

using testing_files::as_bytes;
using testing_files::GgufBuilder;
using testing_files::raw;

// enum ggml_type and gguf_metadata_value_type, as the specification numbers them.
constexpr uint32_t kF32 = 0, kQ4_0 = 2, kQ2_K = 10, kQ6_K = 14;
constexpr uint32_t kTypeU8 = 0, kTypeI32 = 5, kTypeBool = 7, kTypeString = 8, kTypeArray = 9;

TEST(Gguf, ReadsEveryKindOfMetadata) {
  const auto file = GgufBuilder()
                        .raw_entry("u8", 0, raw<uint8_t>(200))
                        .raw_entry("i8", 1, raw<int8_t>(-3))
                        .raw_entry("u16", 2, raw<uint16_t>(65535))
                        .raw_entry("i16", 3, raw<int16_t>(-300))
                        .u32("u32", 4294967295u)
                        .raw_entry("i32", 5, raw<int32_t>(-70000))
                        .f32("f32", 1e-5f)
                        .raw_entry("bool", 7, raw<uint8_t>(1))
                        .string("string", "\xe4\xb8\xad")
                        .raw_entry("u64", 10, raw<uint64_t>(~uint64_t{0}))
                        .raw_entry("i64", 11, raw<int64_t>(-5))
                        .raw_entry("f64", 12, raw<double>(0.1))
                        .strings("strings", {"a", "", "bcd"})
                        .array("ints", kTypeI32, 2, raw<int32_t>(7) + raw<int32_t>(-8))
                        .array("nested", kTypeArray, 2,
                               raw(kTypeU8) + raw<uint64_t>(1) + "x" + raw(kTypeString) + raw<uint64_t>(1) +
                                   GgufBuilder::text("y"))
                        .build(0);
  const auto gguf = read_gguf(as_bytes(file), "m.gguf");
  ASSERT_TRUE(gguf.ok()) << gguf.error().message;
  EXPECT_EQ(
      to_json(gguf->metadata),
      R"({"u8":200,"i8":-3,"u16":65535,"i16":-300,"u32":4294967295,"i32":-70000,"f32":1e-05,"bool":true,)"
      "\"string\":\"\xe4\xb8\xad\",\"u64\":18446744073709551615,\"i64\":-5,\"f64\":0.1}");
  const auto strings = gguf->strings("strings", "m").value();
  EXPECT_EQ(strings.size(), 3u);
  EXPECT_EQ((std::vector<std::string_view>(strings.begin(), strings.end())),
            (std::vector<std::string_view>{"a", "", "bcd"}));
  const auto ints = gguf->numbers<int32_t>("ints", GgufType::kInt32, "m").value();
  ASSERT_EQ(ints.size(), 2u);
  EXPECT_EQ(ints[1], -8);
  EXPECT_EQ(gguf->arrays.at("nested").count, 2u);
  EXPECT_TRUE(gguf->strings("absent", "m").value().empty());
  EXPECT_EQ(gguf->strings("ints", "m").error().message, "m: 'ints' must be an array of type 8, found type 5");
  EXPECT_EQ(gguf->strings("u32", "m").error().message, "m: 'u32' must be an array");
}

TEST(Gguf, FindsTensorsAtTheAlignmentOfTheFile) {
  GgufBuilder builder;
  builder.alignment = 64;
  const auto file = builder.u32("general.alignment", 64)
                        .tensor("q", {256, 2}, kQ6_K, 0)
                        .tensor("f", {3}, kF32, 448)
                        .build(448 + 12);
  const auto gguf = read_gguf(as_bytes(file), "m.gguf");
  ASSERT_TRUE(gguf.ok()) << gguf.error().message;
  ASSERT_EQ(gguf->tensors.size(), 2u);
  EXPECT_EQ(gguf->tensors[0].shape, (std::vector<int64_t>{2, 256}));
  EXPECT_EQ(gguf->tensors[0].bytes.size(), 420u);
  EXPECT_EQ(gguf->tensors[0].offset_bytes % 64, 0u);
  EXPECT_EQ(gguf->tensors[1].offset_bytes, gguf->tensors[0].offset_bytes + 448);
  EXPECT_EQ(gguf->tensors[1].offset_bytes + gguf->tensors[1].bytes.size(), file.size());
}

TEST(Gguf, ReadsVersionTwo) {
  GgufBuilder builder;
  builder.version = 2;
  const auto file = builder.zeros("t", {4}).build();
  EXPECT_TRUE(read_gguf(as_bytes(file), "m").ok());
}

struct Hostile {
  std::string file;
  std::string message;
};

std::string with(auto change) {
  GgufBuilder builder;
  change(builder);
  return builder.build(64);
}

std::string nested_arrays(int depth) {
  std::string value;
  for (int i = 0; i < depth; ++i) value += raw(kTypeArray) + raw<uint64_t>(1);
  return value + raw(kTypeU8) + raw<uint64_t>(0);
}

TEST(Gguf, RefusesHostileFilesWithOneClearError) {
  using B = GgufBuilder;
  const std::vector<Hostile> cases = {
      {"", "does not begin with 'GGUF'"},
      {"GGUF", "the file ends inside the header"},
      {with([](B& b) { b.magic = "GGML"; }), "does not begin with 'GGUF'"},
      {with([](B& b) { b.version = 1; }), "is GGUF version 1; versions 2 and 3 are read"},
      {with([](B& b) { b.version = 4; }), "is GGUF version 4"},
      {with([](B& b) { b.version = 0x03000000; }), "big-endian"},
      {with([](B& b) { b.extra_metadata = -1; }), "claims 18446744073709551615 metadata entries"},
      {with([](B& b) { b.extra_tensors = 1000000; }), "claims 1000000 tensors"},
      {with([](B& b) { b.extra_metadata = 4; }),
       "the metadata key '' stands twice"},  // zeros read as entries
      {with([](B& b) { b.raw_entry(std::string(65536, 'k'), 4, raw(1)); }),
       "the length 65536 of a metadata key is over"},
      {with([](B& b) { b.raw_entry("k\xff", 4, raw(1)); }), "a metadata key is not UTF-8"},
      {with([](B& b) { b.u32("k", 1).u32("k", 2); }), "the metadata key 'k' stands twice"},
      {with([](B& b) { b.u32("k", 1).strings("k", {}); }), "the metadata key 'k' stands twice"},
      {with([](B& b) { b.raw_entry("k", 13, raw(1)); }), "'k' has the type 13, which GGUF does not have"},
      {with([](B& b) { b.raw_entry("k", kTypeBool, raw<uint8_t>(2)); }), "'k' is a boolean of value 2"},
      {with([](B& b) { b.string("k", "\xc3("); }), "the metadata value 'k' is not UTF-8"},
      {with([](B& b) { b.raw_entry("k", kTypeString, raw<uint64_t>(1000) + "x"); }),
       "the file ends inside the metadata value 'k'"},
      {with([](B& b) { b.raw_entry("k", kTypeString, raw<uint64_t>(~uint64_t{0})); }), "is over the bound"},
      {with([](B& b) { b.array("k", 13, 1, raw(1)); }), "is an array of the type 13"},
      {with([](B& b) { b.array("k", kTypeI32, uint64_t{1} << 62, raw(1)); }),
       "'k' claims 4611686018427387904 elements"},
      {with([](B& b) { b.array("k", kTypeString, ~uint64_t{0}, ""); }),
       "the file ends inside the metadata value 'k'"},
      {with([](B& b) { b.array("k", kTypeString, 1, raw(~uint64_t{0} - 7)); }),
       "the file ends inside the metadata value 'k'"},
      {with([](B& b) { b.array("k", kTypeArray, ~uint64_t{0}, ""); }), "the metadata value 'k'"},
      {with([](B& b) { b.raw_entry("k", kTypeArray, nested_arrays(8)); }), "nests arrays deeper than 8"},
      {with([](B& b) { b.raw_entry("k", kTypeArray, nested_arrays(100000)); }), "nests arrays deeper than 8"},
      {with([](B& b) { b.u32("general.alignment", 0); }),
       "'general.alignment' must be a power of two, found 0"},
      {with([](B& b) { b.u32("general.alignment", 48); }),
       "'general.alignment' must be a power of two, found 48"},
      {with([](B& b) { b.string("general.alignment", "32"); }),
       "'general.alignment' must be a power of two, found \"32\""},
      {with([](B& b) { b.raw_entry("general.alignment", 10, raw(uint64_t{1} << 63)); }),
       "must be a power of two"},
      {with([](B& b) { b.u32("split.count", 3); }), "is one of 3 parts"},
      {with([](B& b) { b.tensor(std::string(65, 'n'), {4}, kF32, 0); }),
       "the length 65 of a tensor's name is over"},
      {with([](B& b) { b.tensor("t", {4}, kF32, 0).tensor("t", {4}, kF32, 32); }), "two tensors named 't'"},
      {with([](B& b) {
         b.tensor("t", {1, 1, 1, 1, 1}, kF32, 0);
       }),
       "tensor 't' has 5 dimensions; GGUF allows 4"},
      {with([](B& b) { b.tensor("t", {0}, kF32, 0); }), "tensor 't' has a dimension of 0"},
      {with([](B& b) {
         b.tensor("t", {uint64_t{1} << 32, uint64_t{1} << 32}, kF32, 0);
       }),
       "tensor 't' has a dimension of 4294967296"},
      {with([](B& b) { b.tensor("t", {uint64_t{1} << 61}, kF32, 0); }), "more than the file can hold"},
      {with([](B& b) { b.tensor("t", {~uint64_t{0}}, kF32, 0); }), "has a dimension of 18446744073709551615"},
      {with([](B& b) { b.tensor("t", {256}, kQ2_K, 0); }),
       "tensor 't' has the type Q2_K, which is not supported"},
      {with([](B& b) { b.tensor("t", {256}, 4, 0); }), "tensor 't' has the type number 4, which is unknown"},
      {with([](B& b) { b.tensor("t", {33}, kQ4_0, 0); }),
       "rows of 33 values, no multiple of the 32 that a block of Q4_0 holds"},
      {with([](B& b) { b.tensor("t", {128}, kQ6_K, 0); }),
       "no multiple of the 256 that a block of Q6_K holds"},
      {with([](B& b) { b.tensor("t", {4}, kF32, 16); }),
       "tensor 't' begins at 16, which is no multiple of the alignment 32"},
      {with([](B& b) { b.tensor("t", {4}, kF32, 64); }),
       "tensor 't' has 16 bytes at 64 of the data, but the file has 64"},
      {with([](B& b) { b.tensor("t", {17}, kF32, 0); }),
       "tensor 't' has 68 bytes at 0 of the data, but the file has 64"},
      {with([](B& b) { b.tensor("t", {4}, kF32, ~uint64_t{0} - 31); }), "but the file has 64"},
      {with([](B& b) { b.tensor("t", {12}, kF32, 0).tensor("u", {4}, kF32, 32); }),
       "tensors 't' and 'u' overlap"},
      {with([](B& b) { b.tensor("t", {4}, kF32, 0).tensor("u", {4}, kF32, 0); }), "overlap"},
  };
  for (const auto& hostile : cases) {
    const auto gguf = read_gguf(as_bytes(hostile.file), "m.gguf");
    ASSERT_FALSE(gguf.ok()) << hostile.message;
    EXPECT_TRUE(gguf.error().message.starts_with("m.gguf: ")) << gguf.error().message;
    EXPECT_NE(gguf.error().message.find(hostile.message), std::string::npos)
        << "expected: " << hostile.message << "\ngot: " << gguf.error().message;
  }
}

TEST(Gguf, EveryPrefixOfAFileIsRefused) {
  const auto file = GgufBuilder()
                        .string("general.architecture", "llama")
                        .strings("s", {"abc", "d"})
                        .array("n", kTypeI32, 2, raw<int32_t>(1) + raw<int32_t>(2))
                        .zeros("t", {8, 4})
                        .build();
  ASSERT_TRUE(read_gguf(as_bytes(file), "m").ok());
  for (size_t n = 0; n < file.size(); ++n) {
    const std::string cut = file.substr(0, n);
    EXPECT_FALSE(read_gguf(as_bytes(cut), "m").ok()) << n;
  }
}

}  // namespace
}  // namespace plow
