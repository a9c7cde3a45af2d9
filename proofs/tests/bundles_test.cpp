// plow_verify accepts what the compiler makes: every tiny checkpoint, cut in different ways, the programs of
// the real models and those of a model of 8 billion parameters, for a CPU and for a GPU.
#include "base/testing/temp_dir.h"
#include "base/text_table.h"
#include "compile/pipeline.h"
#include "compile/testing_bundle.h"
#include "models/models.h"
#include "models/testing/fake_checkpoint.h"
#include "rewrite/rewrite.h"
#include "verifier.h"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace plow {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

const fs::path kBuild = fs::path(PLOW_SOURCE_DIR) / "build";

class Silent final : public ProgressSink {
 public:
  void summary(const CompileSummary&) override {}
  void stage(std::string_view, uint64_t, uint64_t) override {}
  bool cancelled() const override { return false; }
};

std::vector<fs::path> folders_with(const fs::path& parent, const std::string& file) {
  std::vector<fs::path> found;
  if (!fs::exists(parent)) return found;
  for (const auto& entry : fs::directory_iterator(parent)) {
    if (fs::exists(entry.path() / file)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Asks about one bundle, and adds a row of what it took.
void expect_accepted(const fs::path& model_pkt, const std::string& what, TextTable& table) {
  const auto lines = verifier_lines(fmt::format("'{}' --json", model_pkt.string()), "");
  ASSERT_EQ(lines.size(), 1u) << what << " is not accepted";
  const json::value report = json::parse(lines[0]);
  EXPECT_TRUE(report.at("accepted").as_bool()) << what << ": " << report.at("reason").as_string();
  int64_t packets = 0, steps = 0;
  for (const json::value& program : report.at("programs").as_array()) {
    packets += program.at("packets").as_int64();
    steps += program.at("token_row_tiles").at(1).as_int64() *
             (program.at("sample_row_tiles").at(1).as_int64() + 1);
  }
  table.add_row({what, std::to_string(packets), std::to_string(steps),
                 fmt::format("{:.2f}", report.at("processor_seconds").as_double()),
                 std::to_string(report.at("memory_bytes").as_int64() / 1000000)});
}

struct Target {
  Isa isa;
  uint32_t workers;
};

// The programs of a checkpoint on a target, without its weights: they are in no program.
void check_target(const Checkpoint& checkpoint, const std::string& name, const Target& target,
                  TextTable& table) {
  auto graph = build_model(checkpoint, {DType::kBf16, std::nullopt});
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  if (target.isa == Isa::kX86_64) {
    RewriteOptions options;
    options.n_workers = target.workers;
    graph = rewrite_graph(*graph, options).value().graph;
  }
  const TempDir folder;
  const fs::path model_pkt = folder.path() / "model.pkt";
  constexpr uint32_t kChunk = 512, kSlots = 16;  // as plowc takes them unless told otherwise
  const auto bytes = serialise_bundle(tables_of_graph(*graph, target.isa, target.workers, kChunk, kSlots));
  std::ofstream(model_pkt, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  expect_accepted(model_pkt, fmt::format("{}, {}, {} workers", name, isa_name(target.isa), target.workers),
                  table);
}

TextTable cost_table() { return TextTable({"bundle", ">packets", ">steps", ">processor s", ">MB"}); }

// 132 workers take the checker a minute and more: with PLOW_TEST_FULL=1.
std::vector<Target> targets(uint32_t x86_64_workers) {
  std::vector<Target> all = {{Isa::kX86_64, x86_64_workers}};
  if (std::getenv("PLOW_TEST_FULL") != nullptr) all.push_back({Isa::kSm90a, 132});
  return all;
}

TEST(Bundles, OfTheTinyCheckpointsAreAccepted) {
  const auto models = folders_with(kBuild / "fixtures/tiny", "config.json");
  if (models.empty()) GTEST_SKIP() << "no tiny checkpoints: scripts/test.sh makes them";
  TextTable table = cost_table();
  for (const fs::path& model : models) {
    for (const uint32_t workers : {1u, 2u, 7u}) {
      const TempDir folder;
      CompileOptions options;
      options.checkpoint = model;
      options.out = folder.path() / "bundle";
      options.n_workers = workers;
      options.max_context = 256;
      options.max_slots = 8;
      options.chunk_rows = workers == 7 ? 200 : 100;  // not a multiple of the row tile
      Silent silent;
      const auto report = compile_model(options, silent);
      ASSERT_TRUE(report.ok()) << model << ": " << report.error().message;
      expect_accepted(options.out / "model.pkt",
                      fmt::format("{}, {} workers", model.filename().string(), workers), table);
    }
  }
  std::printf("%s", table.to_string().c_str());
}

TEST(Bundles, OfTheTinyCheckpointsForAGpuAreAccepted) {
  const auto models = folders_with(kBuild / "fixtures/tiny", "config.json");
  if (models.empty()) GTEST_SKIP() << "no tiny checkpoints: scripts/test.sh makes them";
  TextTable table = cost_table();
  for (const fs::path& model : models) {
    const auto checkpoint = load_checkpoint(model);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    check_target(*checkpoint, model.filename().string(), {Isa::kSm90a, 132}, table);
  }
  std::printf("%s", table.to_string().c_str());
}

TEST(Bundles, OfTheRealModelsAreAccepted) {
  const auto models = folders_with(kBuild / "models", "checkpoint/config.json");
  if (models.empty()) GTEST_SKIP() << "no real model: scripts/test.sh fetches them";
  TextTable table = cost_table();
  for (const fs::path& model : models) {
    const auto checkpoint = load_checkpoint(model / "checkpoint");
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    for (const Target& target : targets(2))
      check_target(*checkpoint, model.filename().string(), target, table);
  }
  std::printf("%s", table.to_string().c_str());
}

// Llama-3.1-8B: no bytes of weights, since neither programs nor their proofs look at them.
TEST(Bundles, OfTheShapeOfAnEightBillionModelAreAccepted) {
  constexpr int64_t kHidden = 4096, kFfn = 14336, kVocab = 128256, kKv = 1024;
  std::vector<FakeTensor> tensors = {{"lm_head.weight", {kVocab, kHidden}},
                                     {"model.embed_tokens.weight", {kVocab, kHidden}},
                                     {"model.norm.weight", {kHidden}}};
  for (int layer = 0; layer < 32; ++layer) {
    const std::string name = fmt::format("model.layers.{}.", layer);
    tensors.push_back({name + "input_layernorm.weight", {kHidden}});
    tensors.push_back({name + "mlp.down_proj.weight", {kHidden, kFfn}});
    tensors.push_back({name + "mlp.gate_proj.weight", {kFfn, kHidden}});
    tensors.push_back({name + "mlp.up_proj.weight", {kFfn, kHidden}});
    tensors.push_back({name + "post_attention_layernorm.weight", {kHidden}});
    tensors.push_back({name + "self_attn.k_proj.weight", {kKv, kHidden}});
    tensors.push_back({name + "self_attn.o_proj.weight", {kHidden, kHidden}});
    tensors.push_back({name + "self_attn.q_proj.weight", {kHidden, kHidden}});
    tensors.push_back({name + "self_attn.v_proj.weight", {kKv, kHidden}});
  }
  const std::string config =
      fake_json(fake_config("LlamaForCausalLM"), {{"vocab_size", "128256"},
                                                  {"hidden_size", "4096"},
                                                  {"intermediate_size", "14336"},
                                                  {"num_hidden_layers", "32"},
                                                  {"num_attention_heads", "32"},
                                                  {"num_key_value_heads", "8"},
                                                  {"head_dim", "128"},
                                                  {"max_position_embeddings", "8192"}});
  const auto checkpoint = fake_checkpoint(config, tensors);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  TextTable table = cost_table();
  for (const Target& target : targets(16)) check_target(*checkpoint, "8B", target, table);
  std::printf("%s", table.to_string().c_str());
}

// The extent of a matrix of blocks is that of its layout, which nothing else has.
TEST(Bundles, OfBlocksAreAcceptedWholeAndInTheirOwnLayoutOnly) {
  const std::vector<std::pair<const char*, void (*)(TensorEntry&)>> changes = {
      {"accepted", [](TensorEntry&) {}},
      {"rejected", [](TensorEntry& matrix) { matrix.bytes -= 1; }},
      {"rejected", [](TensorEntry& matrix) { matrix.cols += 1; }},
      {"rejected", [](TensorEntry& matrix) { matrix.dtype = DType::kBf16; }},
      {"rejected", [](TensorEntry& matrix) { matrix.layout = Layout::kRows16Pairs; }},
      {"rejected", [](TensorEntry& matrix) { matrix.layout = Layout::kRowMajor, matrix.row_stride = 1; }}};
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0}) {
    VerifierBatch batch;
    for (const auto& [verdict, change] : changes) {
      ToyShape shape{.hidden = 64, .heads = 4, .kv_heads = 2, .head_dim = 16, .ffn = 96};
      shape.matrices = dtype;
      BundleTables tables = tables_of_graph(toy_graph(shape), Isa::kX86_64, 2, 100, 4);
      for (ProgramTables& program : tables.programs) {
        for (TensorEntry& tensor : program.tensors) {
          if (tensor.layout == Layout::kRows16Blocks) change(tensor);
        }
      }
      batch.add(serialise_bundle(tables));
    }
    const std::vector<std::string> verdicts = batch.verdicts();
    ASSERT_EQ(verdicts.size(), changes.size());
    for (size_t i = 0; i < changes.size(); ++i)
      EXPECT_EQ(verdicts[i].substr(0, 8), changes[i].first) << i << ": " << verdicts[i];
  }
}

}  // namespace
}  // namespace plow
