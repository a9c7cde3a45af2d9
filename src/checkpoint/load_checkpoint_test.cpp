#include "base/float16.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/testing/files.h"

#include <gtest/gtest.h>

namespace plow {
namespace {

using testing_files::FilesDir;
using testing_files::raw;
using testing_files::safetensors;

// A file of BF16 vectors of two values; value j of the tensor at place k is 16 * k + j.
std::string shard(std::initializer_list<const char*> names) {
  std::string header = "{", data;
  for (const char* name : names) {
    if (!data.empty()) header += ",";
    const size_t at = data.size();
    header += fmt::format(R"("{}":{{"dtype":"BF16","shape":[2],"data_offsets":[{},{}]}})", name, at, at + 4);
    const auto k = static_cast<float>(at / 4);
    data += raw(float_to_bf16(16 * k)) + raw(float_to_bf16(16 * k + 1));
  }
  return safetensors(header + "}", data);
}

TEST(LoadCheckpoint, ReadsAFolderWithOneFile) {
  const FilesDir dir;
  dir.write("config.json", R"({"model_type":"x"})");
  dir.write("generation_config.json", R"({"eos_token_id":2})");
  dir.write("model.safetensors", shard({"b", "a"}));
  const auto checkpoint = load_checkpoint(dir.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->config_source, "config.json");
  EXPECT_EQ(*checkpoint->config.find("model_type")->as_string(), "x");
  EXPECT_EQ(*checkpoint->generation_config->find("eos_token_id")->as_int(), 2);
  ASSERT_EQ(checkpoint->tensors.size(), 2u);
  EXPECT_EQ(checkpoint->tensors[0].name, "a");
  EXPECT_EQ(checkpoint->find("c"), nullptr);
  float values[2];
  read_rows(*checkpoint->find("a"), 0, 1, values);
  EXPECT_EQ(values[0], 16.0f);
  EXPECT_EQ(values[1], 17.0f);
}

TEST(LoadCheckpoint, ReadsShardsByTheirIndex) {
  const FilesDir dir;
  dir.write("config.json", "{}");
  dir.write("one.safetensors", shard({"z", "b"}));
  dir.write("two.safetensors", shard({"a"}));
  dir.write(
      "model.safetensors.index.json",
      R"({"metadata":{"total_size":12},"weight_map":{"b":"one.safetensors","a":"two.safetensors","z":"one.safetensors"}})");
  const auto checkpoint = load_checkpoint(dir.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_FALSE(checkpoint->generation_config.has_value());
  ASSERT_EQ(checkpoint->tensors.size(), 3u);
  EXPECT_EQ(checkpoint->files[checkpoint->find("a")->file_idx].path().filename(), "two.safetensors");
  const auto& b = *checkpoint->find("b");
  EXPECT_EQ(b.bytes.data(), checkpoint->files[b.file_idx].bytes().data() + b.offset_bytes);
  float values[2];
  read_rows(b, 0, 1, values);
  EXPECT_EQ(values[1], 17.0f);
}

TEST(LoadCheckpoint, KeepsItsSpansWhenItIsMoved) {
  const FilesDir dir;
  dir.write("config.json", "{}");
  dir.write("model.safetensors", shard({"a"}));
  Checkpoint moved = load_checkpoint(dir.path()).value();
  const Checkpoint again = std::move(moved);
  float values[2];
  read_rows(again.tensors[0], 0, 1, values);
  EXPECT_EQ(values[1], 1.0f);
}

struct Refusal {
  std::vector<std::pair<std::string, std::string>> files;  // name, bytes
  std::string message;
};

TEST(LoadCheckpoint, RefusesFoldersThatDoNotFitTogether) {
  const std::string index = "model.safetensors.index.json";
  const auto map = [](std::string_view entries) {
    return R"({"weight_map":{)" + std::string(entries) + "}}";
  };
  const std::vector<Refusal> cases = {
      {{}, "has no config.json"},
      {{{"config.json", "{}"}},
       "has neither model.safetensors nor model.safetensors.index.json. Download the checkpoint's weights "
       "too."},
      {{{"config.json", "{}"}, {"pytorch_model.bin", ""}}, "It holds pytorch_model.bin, which is not read"},
      {{{"config.json", "{}"}, {"x.gguf", ""}}, "It holds x.gguf: give that file"},
      {{{"config.json", "[]"}, {"model.safetensors", shard({"a"})}},
       "config.json: the document must be a JSON object"},
      {{{"config.json", "{"}, {"model.safetensors", shard({"a"})}}, "config.json: not valid JSON"},
      {{{"config.json", ""}, {"model.safetensors", shard({"a"})}}, "config.json: not valid JSON"},
      {{{"config.json", "{}"}, {"generation_config.json", "3"}, {"model.safetensors", shard({"a"})}},
       "generation_config.json: the document must be"},
      {{{"config.json", "{}"}, {"model.safetensors", ""}}, "model.safetensors: 0 bytes are too few"},
      {{{"config.json", "{}"}, {index, "{}"}}, "'weight_map' must be an object"},
      {{{"config.json", "{}"}, {index, R"({"weight_map":[]})"}}, "'weight_map' must be an object"},
      {{{"config.json", "{}"}, {index, map("")}}, "'weight_map' names no tensor"},
      {{{"config.json", "{}"}, {index, map(R"("a":1)")}}, "the shard of 'a' must be a string, found 1"},
      {{{"config.json", "{}"}, {index, map(R"("a":"../a")")}},
       "must be the name of a file in the same folder"},
      {{{"config.json", "{}"}, {index, map(R"("a":"/etc/passwd")")}},
       "must be the name of a file in the same folder"},
      {{{"config.json", "{}"}, {index, map(R"("a":"..")")}}, "must be the name of a file in the same folder"},
      {{{"config.json", "{}"}, {index, map(R"("a":"")")}}, "must be the name of a file in the same folder"},
      {{{"config.json", "{}"}, {index, map(R"("a":"x\u0000y")")}},
       "must be the name of a file in the same folder"},
      {{{"config.json", "{}"}, {index, map(R"("a":"s1")")}}, "the shard s1 is not in"},
      {{{"config.json", "{}"}, {index, map(R"("a":"s1","a":"s1")")}, {"s1", shard({"a"})}},
       "the key 'a' stands twice"},
      {{{"config.json", "{}"}, {index, map(R"("a":"s1","b":"s1")")}, {"s1", shard({"a"})}},
       "tensor 'b' should be in s1, but it is not there"},
      {{{"config.json", "{}"}, {index, map(R"("a":"s1")")}, {"s1", shard({"a", "b"})}},
       "tensor 'b' of s1 is not in 'weight_map'"},
      {{{"config.json", "{}"},
        {index, map(R"("a":"s1","b":"s2")")},
        {"s1", shard({"b"})},
        {"s2", shard({"a"})}},
       "tensor 'a' should be in s1, but it is in s2"},
      {{{"config.json", "{}"},
        {index, map(R"("a":"s1","b":"s2")")},
        {"s1", shard({"a"})},
        {"s2", shard({"a", "b"})}},
       "tensor 'a' is in two shards, s1 and s2"},
      {{{"config.json", "{}"}, {index, map(R"("a":"s1")")}, {"s1", "garbage"}}, "s1: 7 bytes are too few"},
  };
  for (const auto& refusal : cases) {
    const FilesDir dir;
    for (const auto& [name, bytes] : refusal.files) dir.write(name, bytes);
    const auto checkpoint = load_checkpoint(dir.path());
    ASSERT_FALSE(checkpoint.ok()) << refusal.message;
    EXPECT_NE(checkpoint.error().message.find(refusal.message), std::string::npos)
        << "expected: " << refusal.message << "\ngot: " << checkpoint.error().message;
  }
}

TEST(LoadCheckpoint, SaysWhatAPathIsNot) {
  const FilesDir dir;
  EXPECT_NE(load_checkpoint(std::string(5000, 'a')).error().message.find("File name too long"),
            std::string::npos);
  EXPECT_NE(load_checkpoint(dir.path() / "none").error().message.find("no such file or folder"),
            std::string::npos);
  EXPECT_NE(load_checkpoint(dir.write("x.bin", ""))
                .error()
                .message.find("neither a folder nor a .gguf file; give a folder with config.json and "
                              "safetensors, or a .gguf file"),
            std::string::npos);
  EXPECT_NE(
      load_checkpoint(dir.write("x.gguf", "")).error().message.find("x.gguf: does not begin with 'GGUF'"),
      std::string::npos);
}

TEST(ReadRows, ReadsAnyRowsOfAnyTensor) {
  // 6 rows of 2 heads: stored row h*d + i*2 + j is row h*d + j*(d/2) + i, with d = 3 rows... of a head of 4
  // below.
  std::vector<float> stored(8 * 2);
  for (size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<float>(i);
  CheckpointTensor tensor;
  tensor.name = "t";
  tensor.shape = {2, 4, 2};
  tensor.bytes = std::as_bytes(std::span(stored));
  EXPECT_EQ(tensor.n_rows(), 8);
  float out[6];
  read_rows(tensor, 3, 3, out);
  EXPECT_EQ((std::vector<float>(out, out + 6)), (std::vector<float>{6, 7, 8, 9, 10, 11}));
  tensor.interleaved_heads = 2;  // rows of the file, in the tensor's order: 0 2 1 3, 4 6 5 7
  read_rows(tensor, 1, 3, out);
  EXPECT_EQ((std::vector<float>(out, out + 6)), (std::vector<float>{4, 5, 2, 3, 6, 7}));
  tensor.addend = -1;
  read_rows(tensor, 5, 1, out);
  EXPECT_EQ(out[0], 11.0f);
  EXPECT_EQ(out[1], 12.0f);
  read_rows(tensor, 8, 0, out);  // nothing
}

TEST(ReadRowsDeathTest, RowsOutsideTheTensorAreABugOfTheCaller) {
  const float stored[2] = {1, 2};
  CheckpointTensor tensor;
  tensor.name = "t";
  tensor.shape = {1, 2};
  tensor.bytes = std::as_bytes(std::span(stored));
  float out[4];
  EXPECT_DEATH(read_rows(tensor, 1, 1, out), "rows 1\\+1 of 1 in t");
  EXPECT_DEATH(read_rows(tensor, -1, 1, out), "rows");
  EXPECT_DEATH(read_rows(tensor, 0, std::numeric_limits<int64_t>::max(), out), "rows");
}

}  // namespace
}  // namespace plow
