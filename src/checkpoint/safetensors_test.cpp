#include "checkpoint/safetensors.h"

#include "checkpoint/testing/files.h"

#include <gtest/gtest.h>

namespace plow {
namespace {

using testing_files::as_bytes;
using testing_files::raw;
using testing_files::safetensors;

TEST(Safetensors, FindsNamesShapesAndBytes) {
  // Listed out of the order of their offsets, a scalar among them, metadata and padding as real files have.
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[1,2],"data_offsets":[6,14]},)"
      R"("a":{"dtype":"BF16","shape":[3],"data_offsets":[0,6]},"s":{"dtype":"F16","shape":[],"data_offsets":[14,16]}}   )";
  const std::string file = safetensors(header, "ABCDEFabcdefgh12");
  const auto tensors = read_safetensors(as_bytes(file), "m", 7);
  ASSERT_TRUE(tensors.ok()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 3u);
  EXPECT_EQ((*tensors)[0].name, "a");
  EXPECT_EQ((*tensors)[0].dtype, StoredDType::kBf16);
  EXPECT_EQ((*tensors)[0].file_idx, 7u);
  EXPECT_EQ((*tensors)[0].offset_bytes, 8 + header.size());
  EXPECT_EQ((*tensors)[1].name, "b");
  EXPECT_EQ((*tensors)[1].shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>((*tensors)[1].bytes.data()), 8), "abcdefgh");
  EXPECT_TRUE((*tensors)[1].stored_as_is());
  EXPECT_EQ((*tensors)[2].shape.size(), 0u);
  EXPECT_EQ((*tensors)[2].n_rows(), 1);
  EXPECT_EQ((*tensors)[2].row_values(), 1);
}

TEST(Safetensors, ReadsAFileWithoutTensors) {
  const std::string file = safetensors("{}", "");
  const auto tensors = read_safetensors(as_bytes(file), "m", 0);
  ASSERT_TRUE(tensors.ok());
  EXPECT_TRUE(tensors->empty());
}

struct Hostile {
  std::string file;
  std::string message;
};

// A file of one tensor 'x' whose description is `entry`, with `data_bytes` of data.
std::string one(std::string_view entry, size_t data_bytes) {
  return safetensors("{\"x\":" + std::string(entry) + "}", std::string(data_bytes, '\0'));
}

std::string two(std::string_view first, std::string_view second, size_t data_bytes) {
  return safetensors(
      fmt::format(
          R"({{"x":{{"dtype":"F32","shape":[1],"data_offsets":{}}},"y":{{"dtype":"F32","shape":[1],"data_offsets":{}}}}})",
          first, second),
      std::string(data_bytes, '\0'));
}

TEST(Safetensors, RefusesHostileFilesWithOneClearError) {
  const std::vector<Hostile> cases = {
      {"", "0 bytes are too few"},
      {"1234567", "7 bytes are too few"},
      {raw<uint64_t>(2), "the header has 2 bytes, but the file ends after 0"},
      {raw<uint64_t>(100) + "{}", "the header has 100 bytes, but the file ends after 2"},
      {raw<uint64_t>(100'000'001) + "{}", "more than the 100000000 that safetensors allows"},
      {raw<uint64_t>(~uint64_t{0}) + "{}", "more than the 100000000 that safetensors allows"},
      {raw<uint64_t>(0) + "{}", "must begin with '{'"},
      {safetensors(" {}", ""), "must begin with '{'"},
      {safetensors("[]", ""), "must begin with '{'"},
      {safetensors("{", ""), "not valid JSON"},
      {safetensors("{}{}", ""), "after the end"},
      {safetensors("{\"\xff\":1}", ""), "not valid JSON"},
      {safetensors(R"({"__float__":"NaN"})", ""), "must be a JSON object"},
      {safetensors("{\"x\":" + std::string(50, '[') + std::string(50, ']') + "}", ""),
       "deeper than 8 levels"},
      {one("3", 0), "tensor 'x': the document must be a JSON object"},
      {one(R"({"shape":[1],"data_offsets":[0,4]})", 4), "tensor 'x': 'dtype' is missing"},
      {one(R"({"dtype":3,"shape":[1],"data_offsets":[0,4]})", 4), "'dtype' must be a string, found 3"},
      {one(R"({"dtype":"F31","shape":[1],"data_offsets":[0,4]})", 4),
       "'dtype' must be the name of a safetensors dtype"},
      {one(R"({"dtype":"f32","shape":[1],"data_offsets":[0,4]})", 4),
       "'dtype' must be the name of a safetensors dtype"},
      {one(R"({"dtype":"I64","shape":[1],"data_offsets":[0,8]})", 8),
       "tensor 'x': dtype I64 is not supported"},
      {one(R"({"dtype":"F32","data_offsets":[0,4]})", 4), "'shape' is missing"},
      {one(R"({"dtype":"F32","shape":4,"data_offsets":[0,4]})", 4), "'shape' must be an array of integers"},
      {one(R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})", 4),
       "'shape' must be an array of integers"},
      {one(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", 4),
       "'shape' must be an array of positive integers"},
      {one(R"({"dtype":"F32","shape":[0],"data_offsets":[0,0]})", 0), "shape has a dimension of 0"},
      {one(R"({"dtype":"F32","shape":[0,4],"data_offsets":[0,0]})", 0), "shape has a dimension of 0"},
      {one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]})", 4),
       "more bytes than 64 bits can count"},
      {one(R"({"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]})", 4),
       "more bytes than 64 bits can count"},
      {one(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]})", 4),
       "'shape' must be an array of integers"},
      {one(R"({"dtype":"F32","shape":[1]})", 4), "'data_offsets' is missing"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})", 4), "'data_offsets' must be [begin, end]"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,8]})", 8),
       "'data_offsets' must be [begin, end]"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})", 4), "'data_offsets' must be [begin, end]"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[-4,0]})", 4), "'data_offsets' must be [begin, end]"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", 3),
       "its bytes end at 4 of the data, but the file has 3"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[9223372036854775800,9223372036854775804]})", 4),
       "the file has 4"},
      {one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})", 4),
       "shape [2] of F32 is 8 bytes, but data_offsets span 4"},
      {one(R"({"dtype":"BF16","shape":[1],"data_offsets":[0,4]})", 4),
       "shape [1] of BF16 is 2 bytes, but data_offsets span 4"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"scale":2})", 4),
       "not understood: 'scale' (2)"},
      {one(R"({"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]})", 4),
       "the key 'dtype' stands twice"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", 5),
       "1 bytes at the end of the file belong to no tensor"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[1,5]})", 5),
       "tensor 'x' begins at byte 1 of the data, after where"},
      {two("[0,4]", "[0,4]", 4), "before where the one before it ends (4)"},
      {two("[0,4]", "[2,6]", 6), "begins at byte 2 of the data, before where"},
      {two("[0,4]", "[5,9]", 9), "tensor 'y' begins at byte 5 of the data, after where"},
      {two("[4,8]", "[8,12]", 12), "tensor 'x' begins at byte 4 of the data, after where"},
      {safetensors(
           R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
           std::string(8, '\0')),
       "the key 'x' stands twice"},
      {safetensors(R"({"__metadata__":[]})", ""), "'__metadata__' must be an object of strings"},
      {safetensors(R"({"__metadata__":{"a":1}})", ""), "'__metadata__.a' must be a string, found 1"},
      {safetensors("{}", "x"), "1 bytes at the end of the file belong to no tensor"},
  };
  for (const auto& hostile : cases) {
    const auto tensors = read_safetensors(as_bytes(hostile.file), "model.safetensors", 0);
    ASSERT_FALSE(tensors.ok()) << hostile.message;
    EXPECT_TRUE(tensors.error().message.starts_with("model.safetensors")) << tensors.error().message;
    EXPECT_NE(tensors.error().message.find(hostile.message), std::string::npos)
        << "expected: " << hostile.message << "\ngot: " << tensors.error().message;
  }
}

TEST(Safetensors, EveryPrefixOfAFileIsRefused) {
  const std::string file = two("[0,4]", "[4,8]", 8);
  ASSERT_TRUE(read_safetensors(as_bytes(file), "m", 0).ok());
  for (size_t n = 0; n < file.size(); ++n) {
    const std::string cut = file.substr(0, n);
    EXPECT_FALSE(read_safetensors(as_bytes(cut), "m", 0).ok()) << n;
  }
}

}  // namespace
}  // namespace plow
