// What the rewriter makes of a layer for a GPU: operators that have a body there, and no more waits than
// those.
#include "compile/pipeline.h"
#include "isa/gpu/support.h"
#include "models/testing/fake_checkpoint.h"

#include <gtest/gtest.h>

#include <map>

namespace plow {
namespace {

struct Family {
  const char* architecture;
  bool head_norms, norms_after;
  std::map<std::string, int> layer;  // operators of a layer that is not the last
};

// Three layers of the shape of Llama-3.2-1B.
OpGraph model_of(const Family& family) {
  const int64_t hidden = 2048, inner = 8192, q = 2048, kv = 512, vocab = 128256, head = 64;
  const std::string config =
      fake_json(fake_config(family.architecture), {{"vocab_size", std::to_string(vocab)},
                                                   {"hidden_size", std::to_string(hidden)},
                                                   {"intermediate_size", std::to_string(inner)},
                                                   {"num_hidden_layers", "3"},
                                                   {"num_attention_heads", "32"},
                                                   {"num_key_value_heads", "8"},
                                                   {"head_dim", std::to_string(head)},
                                                   {"max_position_embeddings", "4096"},
                                                   {"tie_word_embeddings", "true"}});
  std::vector<FakeTensor> tensors = {{"model.embed_tokens.weight", {vocab, hidden}},
                                     {"model.norm.weight", {hidden}}};
  for (int layer = 0; layer < 3; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
      tensors.push_back({prefix + name, std::move(shape)});
    };
    add("input_layernorm.weight", {hidden});
    add("post_attention_layernorm.weight", {hidden});
    add("mlp.down_proj.weight", {hidden, inner});
    add("mlp.gate_proj.weight", {inner, hidden});
    add("mlp.up_proj.weight", {inner, hidden});
    add("self_attn.q_proj.weight", {q, hidden});
    add("self_attn.k_proj.weight", {kv, hidden});
    add("self_attn.v_proj.weight", {kv, hidden});
    add("self_attn.o_proj.weight", {hidden, q});
    if (family.head_norms) {
      add("self_attn.q_norm.weight", {head});
      add("self_attn.k_norm.weight", {head});
    }
    if (family.norms_after) {
      add("pre_feedforward_layernorm.weight", {hidden});
      add("post_feedforward_layernorm.weight", {hidden});
    }
  }
  const Result<OpGraph> graph = build(config, tensors);
  PLOW_CHECK(graph.ok(), "{}", graph.error().message);
  return *graph;
}

class GpuRewrite : public testing::TestWithParam<Isa> {};

TEST_P(GpuRewrite, ALayerIsAsFewOperatorsAsHaveABodyThere) {
  const std::map<std::string, int> llama = {{"norm_linear", 3}, {"rope", 1},       {"rope_kv_append", 1},
                                            {"attention", 1},   {"linear_add", 2}, {"norm_glu_linear", 1}};
  const std::map<std::string, int> qwen3 = {{"norm_linear", 3}, {"norm_rope", 1},  {"norm_rope_kv_append", 1},
                                            {"attention", 1},   {"linear_add", 2}, {"norm_glu_linear", 1}};
  const std::map<std::string, int> gemma3 = {
      {"norm_linear", 3}, {"norm_rope", 1}, {"norm_rope_kv_append", 1}, {"attention", 1},
      {"linear", 2},      {"norm_add", 2},  {"norm_glu_linear", 1}};
  for (const Family& family : {Family{kLlama, false, false, llama}, Family{kQwen3, true, false, qwen3},
                               Family{kGemma3, true, true, gemma3}}) {
    SCOPED_TRACE(family.architecture);
    CompileOptions options;
    options.isa = GetParam();
    const Part& part = default_part(options.isa);
    options.n_workers = part.n_workers;
    const Result<RewriteResult> rewritten = rewrite_model(model_of(family), options, part);
    ASSERT_TRUE(rewritten.ok()) << rewritten.error().message;
    std::map<std::string, int> layer;
    for (const Node& node : rewritten->graph.nodes) {
      if (is_leaf(node.op)) continue;
      EXPECT_TRUE(gpu::has_body(node.op)) << op_name(node.op);
      if (node.layer != 1 || node.op == Op::kAttentionMerge) continue;
      ++layer[node.op == Op::kAttentionPart ? "attention" : op_name(node.op)];  // split or not, by the figures
    }
    EXPECT_EQ(layer, family.layer);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, GpuRewrite,
                         testing::Values(Isa::kSm90a, Isa::kSm120, Isa::kGfx942, Isa::kGfx950),
                         [](const auto& one) { return isa_name(one.param); });

}  // namespace
}  // namespace plow
