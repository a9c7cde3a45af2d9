// A checkpoint of blocks, compiled and run, against the float64 evaluator on the values that the blocks stand for.
//
// The tolerance is that of docs/numerics.md, "Products with matrices of blocks": what the rounding of activations does to logits
// is measured on the model itself in float64, by disturbing its matrices as much as that rounding disturbs a term.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <random>

#include "base/check.h"
#include "base/float16.h"
#include "base/mapped_file.h"
#include "checkpoint/testing/files.h"
#include "graph/evaluate.h"
#include "harness.h"
#include "interp/reference/testing/steps.h"
#include "models/checkpoint_weights.h"
#include "models/models.h"

namespace plow {
namespace {

using testing_files::GgufBuilder;
using testing_files::raw;

constexpr uint32_t kVocab = 40, kHidden = 64, kInner = 96, kHeads = 4, kKvHeads = 2, kHeadDim = 16, kLayers = 2;
// Numbers of GGUF's types.
constexpr uint32_t kGgufF32 = 0, kGgufQ4_0 = 2, kGgufQ8_0 = 8;

// A llama with blocks of both kinds and random weights; the head is the embedding. The last layer's gated pair is of two kinds.
class BlockCheckpoint {
 public:
  BlockCheckpoint() {
    builder_.string("general.architecture", "llama");
    for (const auto& [key, value] : {std::pair{"llama.context_length", 128u}, {"llama.embedding_length", kHidden}, {"llama.block_count", kLayers},
                                     {"llama.feed_forward_length", kInner}, {"llama.attention.head_count", kHeads},
                                     {"llama.attention.head_count_kv", kKvHeads}, {"llama.rope.dimension_count", kHeadDim},
                                     {"tokenizer.ggml.eos_token_id", 0u}}) {
      builder_.u32(key, value);
    }
    builder_.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f).f32("llama.rope.freq_base", 10000.0f);
    builder_.string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", "gpt-2").strings("tokenizer.ggml.merges", {"A B"});
    std::string tokens;
    for (uint32_t i = 0; i + 1 < kVocab; ++i) tokens += GgufBuilder::text(std::string(1, static_cast<char>('A' + i)));
    builder_.array("tokenizer.ggml.tokens", 8, kVocab, tokens + GgufBuilder::text("AB"));
    matrix("token_embd.weight", kVocab, kHidden, kGgufQ8_0);
    gain("output_norm.weight");
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      const uint32_t type = layer == 0 ? kGgufQ8_0 : kGgufQ4_0;
      gain(prefix + "attn_norm.weight");
      matrix(prefix + "attn_q.weight", kHeads * kHeadDim, kHidden, type);
      matrix(prefix + "attn_k.weight", kKvHeads * kHeadDim, kHidden, type);
      matrix(prefix + "attn_v.weight", kKvHeads * kHeadDim, kHidden, type);
      matrix(prefix + "attn_output.weight", kHidden, kHeads * kHeadDim, type);
      gain(prefix + "ffn_norm.weight");
      matrix(prefix + "ffn_gate.weight", kInner, kHidden, type);
      matrix(prefix + "ffn_up.weight", kInner, kHidden, kGgufQ8_0);
      matrix(prefix + "ffn_down.weight", kHidden, kInner, type);
    }
    path_ = folder_.path() / "blocks.gguf";
    std::ofstream(path_, std::ios::binary) << builder_.build(0) << data_;
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  void add(const std::string& name, std::initializer_list<uint64_t> dims, uint32_t type, const std::string& bytes) {
    builder_.tensor(name, dims, type, data_.size());
    data_ += bytes;
    data_.resize((data_.size() + 31) / 32 * 32);
  }
  void gain(const std::string& name) {
    std::string bytes;
    for (uint32_t i = 0; i < kHidden; ++i) bytes += raw(0.5f + static_cast<float>(random_() % 1024) / 1024);
    add(name, {kHidden}, kGgufF32, bytes);
  }
  void matrix(const std::string& name, uint32_t rows, uint32_t cols, uint32_t type) {
    const bool wide = type == kGgufQ8_0;
    std::string bytes;
    for (uint32_t block = 0; block < rows * cols / 32; ++block) {
      const float size = (1 + static_cast<float>(random_() % 1024) / 1024) / std::sqrt(static_cast<float>(cols)) / (wide ? 128 : 8);
      bytes += raw(float_to_f16(random_() % 2 == 0 ? size : -size));
      for (uint32_t i = 0; i < (wide ? 32u : 16u); ++i) bytes += static_cast<char>(random_());
    }
    add(name, {cols, rows}, type, bytes);
  }

  TempDir folder_;
  std::filesystem::path path_;
  GgufBuilder builder_;
  std::string data_;
  std::mt19937 random_{7};
};

// The root mean square error of an activation of a block, in units of the block's root mean square, when it becomes a 16-bit
// multiple of the largest one's 1 / 32767: the largest is at most sqrt(32) times that, and an error uniform over a step has
// a root mean square of 1 / sqrt(12) of it.
const double kActivationNoise = std::sqrt(32.0) / 32767 / std::sqrt(12.0);

// The matrices with so much noise that each term of a product is disturbed by as much as that.
class NoisyWeights final : public WeightSource {
 public:
  NoisyWeights(const WeightSource& weights, double noise, uint32_t seed) : weights_(weights), noise_(noise), random_(seed) {}

  Status read_rows(const std::string& name, uint32_t first, uint32_t count, uint32_t cols, float* out) const override {
    PLOW_TRY_STATUS(weights_.read_rows(name, first, count, cols, out));
    std::normal_distribution<double> normal;
    for (size_t i = 0; count > 1 && i < size_t{count} * cols; ++i) out[i] = static_cast<float>(out[i] * (1 + noise_ * normal(random_)));
    return {};
  }

 private:
  const WeightSource& weights_;
  double noise_;
  mutable std::mt19937 random_;
};

// Logits after every token of a prompt, [token, vocab].
Matrix evaluate(const OpGraph& graph, const WeightSource& weights, const std::vector<uint32_t>& ids) {
  Result<Evaluator> evaluator = Evaluator::create(graph, weights, 1);
  PLOW_CHECK(evaluator.ok(), "{}", evaluator.error().message);
  EvalStep step;
  step.spans = {{0, static_cast<uint32_t>(ids.size()), 0, 0}};
  step.token_ids = ids;
  for (uint32_t i = 0; i < ids.size(); ++i) step.sample_rows.push_back(i);
  step.sampling.assign(ids.size(), greedy_sampling());
  return evaluator->run_for(step, graph.inputs_of(graph.tokens)[0]);
}

struct Reference {
  std::vector<GoldenPrompt> prompts;
  double sigma = 0;
};

Reference make_reference(const std::filesystem::path& path) {
  const Checkpoint checkpoint = load_checkpoint(path).value();
  const OpGraph graph = build_model(checkpoint, {DType::kF32, {}, true}).value();
  const CheckpointWeights weights(checkpoint);
  Reference reference;
  std::mt19937 random(3);
  for (const uint32_t length : {1u, 3u, 17u, 40u, 70u}) {
    GoldenPrompt prompt;
    for (uint32_t i = 0; i < length; ++i) prompt.ids.push_back(static_cast<uint32_t>(random() % kVocab));
    const Matrix exact = evaluate(graph, weights, prompt.ids);
    std::vector<double> squares(length);
    constexpr uint32_t kSeeds = 8;
    for (uint32_t seed = 0; seed < kSeeds; ++seed) {
      const Matrix noisy = evaluate(graph, NoisyWeights(weights, kActivationNoise, seed), prompt.ids);
      for (size_t i = 0; i < exact.values.size(); ++i)
        squares[i / kVocab] += std::pow(noisy.values[i] - exact.values[i], 2) / kVocab / kSeeds;
    }
    for (const double square : squares) reference.sigma = std::max(reference.sigma, std::sqrt(square));
    for (uint32_t i = 0; i < length; ++i) {
      GoldenLogits logits{.position = i, .ids = {}, .logits = {exact.row(i), exact.row(i) + kVocab}};
      for (uint32_t id = 0; id < kVocab; ++id) logits.ids.push_back(id);
      prompt.logits.push_back(std::move(logits));
    }
    reference.prompts.push_back(std::move(prompt));
  }
  return reference;
}

class Blocks : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    checkpoint_ = std::make_unique<BlockCheckpoint>();
    reference_ = make_reference(checkpoint_->path());
  }
  static void TearDownTestSuite() { checkpoint_.reset(); }

  static CompileOptions options() {
    CompileOptions options;
    options.checkpoint = checkpoint_->path();
    options.max_context = 96;
    options.max_slots = 8;
    options.chunk_rows = 50;
    options.kv_dtype = DType::kF32;
    options.n_workers = 2;
    return options;
  }

  static inline std::unique_ptr<BlockCheckpoint> checkpoint_;
  static inline Reference reference_;
};

TEST_F(Blocks, LieInTheTapeAsTheyAreStored) {
  const TestBundle bundle(options());
  const BundleFile file = BundleFile::open(bundle.path() / "model.pkt").value();
  std::map<std::string, int> matrices;
  for (const TensorEntry& tensor : file.programs()[0].tensors) {
    if (tensor.space == Space::kTape && tensor.rows > 1) ++matrices[dtype_name(tensor.dtype)];
  }
  // Embedding, seven matrices a layer; of the last layer all but `up` are of 4 bits.
  EXPECT_EQ(matrices, (std::map<std::string, int>{{"q8_0", 1 + 7 + 1}, {"q4_0", 6}}));
}

TEST_F(Blocks, LogitsAreThoseOfTheValuesThatTheyStandFor) {
  const double tolerance = 6 * reference_.sigma;
  double worst = 0;
  for (const uint32_t workers : {1u, 2u}) {
    CompileOptions with = options();
    with.n_workers = workers;
    const TestBundle bundle(with);
    for (const IsaLevel level : available_isa_levels()) {
      Engine engine = bundle.engine(level);
      for (const auto& [chunk, batch] : {std::pair{1u, 3u}, {7u, 5u}, {64u, 1u}}) {
        for (size_t first = 0; first < reference_.prompts.size(); first += batch) {
          std::vector<const GoldenPrompt*> group;
          for (size_t i = first; i < std::min(first + batch, reference_.prompts.size()); ++i) group.push_back(&reference_.prompts[i]);
          const auto logits = teacher_forced(engine, group, chunk);
          for (size_t i = 0; i < group.size(); ++i) worst = std::max(worst, worst_error(*group[i], logits[i]));
        }
      }
    }
  }
  EXPECT_LE(worst, tolerance);
  EXPECT_GE(worst, tolerance / 50) << "a tolerance that lets mistakes through";
  RecordProperty("worst", std::to_string(worst));
  RecordProperty("tolerance", std::to_string(tolerance));
}

// The reference machine computes in double and knows nothing of the bodies: what it shows is the tape. Its activations are rounded to
// f32, which is four roundings a term at most.
TEST_F(Blocks, TheReferenceMachineReadsTheSameValuesOutOfTheTape) {
  const TestBundle compiled(options());
  const BundleFile bundle = BundleFile::open(compiled.path() / "model.pkt").value();
  const MappedFile tape = MappedFile::open(compiled.path() / "weights.tape").value();
  const double tolerance = 6 * reference_.sigma * (4 * 0x1p-24 / kActivationNoise);
  for (const GoldenPrompt& prompt : reference_.prompts) {
    if (prompt.ids.size() > options().chunk_rows) continue;
    auto machine = reference::Machine::create(bundle, tape.bytes(), {.slots = 1}).value();
    const auto output = machine.run(reference::step_of({{0, 0, prompt.ids}}, 1));
    ASSERT_TRUE(output.ok()) << output.error().message;
    ASSERT_TRUE(output->findings.empty());
    for (uint32_t id = 0; id < kVocab; ++id) EXPECT_NEAR(static_cast<double>(output->logits[id]), prompt.logits.back().logits[id], tolerance);
  }
}

// The rewriter's fusions and cuts change no bit of a product.
TEST_F(Blocks, RewritingChangesNoBit) {
  CompileOptions plain = options();
  plain.rewrite = false;
  const TestBundle rewritten(options()), as_it_was(plain);
  Engine a = rewritten.engine(), b = as_it_was.engine();
  for (const GoldenPrompt& prompt : reference_.prompts) EXPECT_EQ(teacher_forced(a, {&prompt}, 64), teacher_forced(b, {&prompt}, 64));
}

}  // namespace
}  // namespace plow
