// Decode of a model's shape on a GPU, with random weights made there: milliseconds a token beside the floor,
// which is the bytes read over the read bandwidth that the same run measured. Usage:
//
//     gpu_decode_bench SHAPE CONTEXT STEPS [plain] [trace] [chunk=ROWS] [rows=SEQUENCES]
//
// `plain`: without rewriting; `trace`: packets note their times, and where the last step of the prompt and of decode went is
// printed by operator; `chunk`: most rows of a step of a prompt; `rows`: sequences that decode together, each with that context.
#include "compile/pipeline.h"
#include "compile/programs.h"
#include "isa/gpu/support.h"
#include "models/testing/fake_checkpoint.h"
#include "packet/kv_plan.h"
#include "packet/tape.h"
#include "runtime/cuda/cuda_driver.h"
#include "runtime/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string_view>

namespace plow {
namespace {

struct ModelShape {
  const char *name, *family;
  uint32_t hidden, inter, layers, heads, kv_heads, head_dim, vocab;
  bool tied;
  uint32_t window = 0;  // of five layers of six

  // Positions that the layers' attention reads for a row at `context`, of all layers together.
  double positions(double context) const {
    if (window == 0) return layers * context;
    return layers / 6 * context + (layers - layers / 6) * std::min<double>(context, window);
  }
};
// Llama 3.2 1B and 3.1 8B, Qwen3 4B and Gemma 3 12B by their config.json.
constexpr ModelShape kShapes[] = {{"small", kLlama, 512, 1536, 4, 8, 2, 64, 32000, true},
                                  {"llama-1b", kLlama, 2048, 8192, 16, 32, 8, 64, 128256, true},
                                  {"llama-1b-small-head", kLlama, 2048, 8192, 16, 32, 8, 64, 2048, true},
                                  {"llama-8b", kLlama, 4096, 14336, 32, 32, 8, 128, 128256, false},
                                  {"qwen3-4b", kQwen3, 2560, 9728, 36, 32, 8, 128, 151936, true},
                                  {"gemma3-12b", kGemma3, 3840, 15360, 48, 16, 8, 256, 262208, true, 1024}};

// Gains that a layer has beside Llama's.
std::vector<FakeTensor> more_norms(const ModelShape& s) {
  std::vector<FakeTensor> norms;
  if (s.family == kLlama) return norms;
  norms = {{"self_attn.q_norm.weight", {s.head_dim}}, {"self_attn.k_norm.weight", {s.head_dim}}};
  if (s.family == kGemma3) {
    norms.push_back({"pre_feedforward_layernorm.weight", {s.hidden}});
    norms.push_back({"post_feedforward_layernorm.weight", {s.hidden}});
  }
  return norms;
}

Result<OpGraph> graph_of(const ModelShape& s) {
  const auto number = [](uint32_t value) { return std::to_string(value); };
  const std::string config =
      fake_json(fake_config(s.family), {{"vocab_size", number(s.vocab)},
                                      {"hidden_size", number(s.hidden)},
                                      {"intermediate_size", number(s.inter)},
                                      {"num_hidden_layers", number(s.layers)},
                                      {"num_attention_heads", number(s.heads)},
                                      {"num_key_value_heads", number(s.kv_heads)},
                                      {"head_dim", number(s.head_dim)},
                                      {"max_position_embeddings", "131072"},
                                      {"sliding_window", s.window > 0 ? number(s.window) : ""},
                                      {"tie_word_embeddings", s.tied ? "true" : "false"}});
  std::vector<FakeTensor> tensors = {{"model.embed_tokens.weight", {s.vocab, s.hidden}},
                                     {"model.norm.weight", {s.hidden}}};
  if (!s.tied) tensors.push_back({"lm_head.weight", {s.vocab, s.hidden}});
  for (uint32_t l = 0; l < s.layers; ++l) {
    const std::string layer = fmt::format("model.layers.{}.", l);
    const int64_t q = int64_t{s.heads} * s.head_dim, kv = int64_t{s.kv_heads} * s.head_dim;
    for (const FakeTensor& tensor : std::vector<FakeTensor>{{"input_layernorm.weight", {s.hidden}},
                                                            {"post_attention_layernorm.weight", {s.hidden}},
                                                            {"mlp.down_proj.weight", {s.hidden, s.inter}},
                                                            {"mlp.gate_proj.weight", {s.inter, s.hidden}},
                                                            {"mlp.up_proj.weight", {s.inter, s.hidden}},
                                                            {"self_attn.q_proj.weight", {q, s.hidden}},
                                                            {"self_attn.k_proj.weight", {kv, s.hidden}},
                                                            {"self_attn.v_proj.weight", {kv, s.hidden}},
                                                            {"self_attn.o_proj.weight", {s.hidden, q}}})
      tensors.push_back({layer + tensor.name, tensor.shape});
    for (const FakeTensor& norm : more_norms(s)) tensors.push_back({layer + norm.name, norm.shape});
  }
  return build(config, tensors, {DType::kBf16, std::nullopt});
}

struct BenchOptions {
  uint32_t context = 0, steps = 0;
  uint32_t chunk_rows = CompileOptions().chunk_rows;
  uint32_t rows = 1;
  bool rewrites = true, trace = false;
};

Result<BundleFile> bundle_of(const ModelShape& shape, const GpuFacts& gpu, const BenchOptions& options,
                             uint32_t context) {
  PLOW_TRY(const OpGraph model, graph_of(shape));
  CompileOptions compile;
  compile.isa = gpu.isa;
  compile.n_workers = gpu.n_workers;
  compile.rewrite = options.rewrites;
  compile.chunk_rows = options.chunk_rows;
  const Plan plan = default_plan(gpu.isa);
  PLOW_TRY(const RewriteResult rewritten, rewrite_model(model, compile, plan.part));
  const OpGraph& graph = rewritten.graph;
  BundleTables tables;
  BundleHeader& header = tables.header;
  header.isa = gpu.isa;
  header.n_workers = gpu.n_workers;
  const TapePlan tape = plan_tape(graph, gpu.isa);
  header.tape_bytes = tape.bytes;
  header.vocab = graph.vocab;
  header.max_context = context;
  header.max_slots = std::max(16u, options.rows);
  header.kv_dtype = DType::kBf16;
  header.n_layers = graph.n_layers;
  header.hidden = graph.hidden;
  PLOW_TRY(const auto programs,
           build_programs(graph, gpu.n_workers, compile.chunk_rows, header.max_slots, plan));
  for (const ProgramStages& program : programs) {
    tables.programs.push_back(program.tables);
    for (const Packet& packet : program.tables.packets)
      header.scratch_bytes =
          std::max(header.scratch_bytes,
                   static_cast<uint32_t>(gpu::body_scratch_bytes(packet, program.tables.tensors.data())));
  }
  tables.kv_groups = plan_kv(graph, gpu.isa).groups;
  for (const TapeTensor& tensor : tape.tensors)
    tables.sources.push_back({"random", tensor.offset, tensor.bytes, 0, 0});
  return BundleFile::from_bytes(serialise_bundle(tables));
}

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Where the last step's time went, which was of that program, by operator; of packets with several row tiles, of the last.
Status print_times(Engine& engine, uint32_t index) {
  struct Sums {
    uint64_t packets = 0, wait = 0, body = 0, signal = 0, longest_body = 0;
    std::map<uint32_t, std::pair<uint64_t, uint64_t>> spans;  // from the first that was ready to the last end
  };
  PLOW_TRY(const auto times, engine.packet_times(index));
  const ProgramView program = engine.bundle().programs()[index];
  std::map<Op, Sums> sums;
  for (size_t w = 0; w < times.size(); ++w) {
    for (size_t i = 0; i < times[w].size(); ++i) {
      const Packet& packet = program.packets[program.workers[w].first_packet + i];
      const PacketTimes& t = times[w][i];
      if (t.wait == 0) continue;
      Sums& of = sums[static_cast<Op>(packet.body)];
      ++of.packets;
      of.wait += t.body - t.wait;
      of.body += t.signal - t.body;
      of.longest_body = std::max(of.longest_body, t.signal - t.body);
      of.signal += t.end - t.signal;
      uint32_t last = 0;
      while (last + 1 < kPacketOperands && packet.operand[last + 1] != kNoTensor) ++last;
      auto [span, fresh] = of.spans.try_emplace(packet.operand[last], t.body, t.end);
      span->second = {std::min(span->second.first, t.body), std::max(span->second.second, t.end)};
    }
  }
  fmt::print("{:18} {:>5} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9}\n", "operator", "ops", "packets", "wait ns",
             "body ns", "longest", "signal", "span ns", "all us");
  for (const auto& [op, of] : sums) {
    uint64_t spans = 0;
    for (const auto& [tensor, span] : of.spans) spans += span.second - span.first;
    fmt::print("{:18} {:>5} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9}\n", op_name(op), of.spans.size(), of.packets,
               of.wait / of.packets, of.body / of.packets, of.longest_body, of.signal / of.packets,
               spans / of.spans.size(), spans / 1000);
  }
  return {};
}

// Operations of a prompt's products and of its attention.
double prompt_operations(const ModelShape& s, double rows) {
  const double q = double{1} * s.heads * s.head_dim, kv = double{1} * s.kv_heads * s.head_dim;
  const double products = s.hidden * (2 * q + 2 * kv) + 3.0 * s.hidden * s.inter;
  return s.layers * (2 * rows * products + 2 * rows * rows * q);
}

Status step_prompt(Engine& engine, uint32_t slot, std::span<const uint32_t> prompt) {
  for (size_t first = 0; first < prompt.size(); first += engine.max_rows()) {
    const StepRequest request{
        slot, prompt.subspan(first, std::min<size_t>(engine.max_rows(), prompt.size() - first)), {}, {}};
    const auto result = engine.step(std::span(&request, 1));
    if (!result.ok()) return result.error();
  }
  return {};
}

// The prompt three times, after one that is not counted.
Status time_prompt(Engine& engine, uint32_t slot, std::span<const uint32_t> prompt, const ModelShape& shape) {
  std::vector<double> times;
  for (uint32_t repeat = 0; repeat < 4; ++repeat) {
    PLOW_TRY_STATUS(engine.rewind(slot, 0));
    const double began = now_ms();
    PLOW_TRY_STATUS(step_prompt(engine, slot, prompt));
    if (repeat > 0) times.push_back(now_ms() - began);
  }
  std::sort(times.begin(), times.end());
  fmt::print("prompt of {} tokens: {:.1f} ms ({:.1f} .. {:.1f}), {:.1f} TFLOP/s\n", prompt.size(), times[1], times.front(), times.back(),
             prompt_operations(shape, static_cast<double>(prompt.size())) / times[1] * 1e-9);
  return {};
}

// Milliseconds of a step in which each slot decodes a token, and all tokens that it and those after it gave.
Result<std::pair<double, std::vector<uint32_t>>> time_decode(Engine& engine, std::span<const uint32_t> slots,
                                                             const BenchOptions& bench) {
  const uint32_t token = 1, row = 0;
  std::vector<StepRequest> requests;
  for (const uint32_t slot : slots) {
    PLOW_TRY_STATUS(engine.rewind(slot, bench.context));
    requests.push_back({slot, std::span(&token, 1), std::span(&row, 1), greedy_sampling()});
  }
  const double began = now_ms();
  PLOW_TRY(const StepResult result, engine.step(requests, {bench.steps, false}));
  const double ms = (now_ms() - began) / bench.steps;
  std::vector<uint32_t> tokens;
  for (const StepToken& one : result.tokens) {
    if (!std::isfinite(one.logprob)) return verification_error("a probability is not a number");
    tokens.push_back(one.token);
  }
  return std::pair{ms, tokens};
}

Status run(const ModelShape& shape, const BenchOptions& bench) {
  const uint32_t context = bench.context, steps = bench.steps;
  PLOW_TRY(auto driver, open_cuda(0));
  double began = now_ms();
  PLOW_TRY(BundleFile bundle, bundle_of(shape, driver->facts(), bench, context + 8 * steps + 64));
  fmt::print("{}: scheduled in {:.0f} ms, {} and {} packets, arena {:.1f} MB\n", shape.name, now_ms() - began,
             bundle.programs()[0].packets.size(), bundle.programs().back().packets.size(),
             static_cast<double>(bundle.programs().back().entry->arena_bytes) * 1e-6);
  EngineOptions options;
  options.random_weights = true;
  options.slots = bench.rows;
  options.trace = bench.trace;
  options.deadline = std::chrono::milliseconds(5000);
  double weight_bytes = 0;
  for (const StreamEntry& entry : bundle.programs()[0].stream)
    weight_bytes += entry.kv == 0 ? entry.bytes : 0;
  const double kv_bytes = 2.0 * shape.positions(context) * shape.kv_heads * shape.head_dim * 2 * bench.rows;
  began = now_ms();
  PLOW_TRY(Engine engine, Engine::create_on(std::move(bundle), {}, options, std::move(driver)));
  PLOW_TRY(const double bandwidth, engine.read_bandwidth());
  const double floor = (weight_bytes + kv_bytes) / bandwidth * 1e3;
  fmt::print("loaded in {:.0f} ms; {:.3f} GB a step, read bandwidth {:.3f} TB/s, floor {:.3f} ms\n",
             now_ms() - began, (weight_bytes + kv_bytes) * 1e-9, bandwidth * 1e-12, floor);
  std::vector<uint32_t> prompt, slots;
  for (uint32_t i = 0; i < context; ++i)
    prompt.push_back(static_cast<uint32_t>((uint64_t{i} * 7919 + 17) % shape.vocab));
  for (uint32_t i = 0; i < bench.rows; ++i) {
    PLOW_TRY(const uint32_t slot, engine.open_slot());
    slots.push_back(slot);
    if (i == 0) PLOW_TRY_STATUS(time_prompt(engine, slot, prompt, shape));
    if (i > 0) PLOW_TRY_STATUS(step_prompt(engine, slot, prompt));
  }
  if (bench.trace) PLOW_TRY_STATUS(print_times(engine, 1));
  std::vector<double> per_token;
  std::vector<uint32_t> first_answer;
  for (uint32_t repeat = 0; repeat < 7; ++repeat) {
    PLOW_TRY(const auto timed, time_decode(engine, slots, bench));
    if (repeat > 0) per_token.push_back(timed.first);
    if (repeat == 0) first_answer = timed.second;
    if (timed.second != first_answer) return verification_error("two repeats gave different tokens");
  }
  std::sort(per_token.begin(), per_token.end());
  const double median = per_token[per_token.size() / 2];
  fmt::print(
      "decode of {} rows at {} tokens, {} steps a call: {:.3f} ms a step ({:.3f} .. {:.3f}), {:.2f} x floor; tokens {} "
      "{} {} ...\n",
      bench.rows, context, steps, median, per_token.front(), per_token.back(), median / floor, first_answer[0],
      first_answer[1], first_answer[2]);
  return bench.trace ? print_times(engine, bench.rows > kFewRows ? 1 : 0) : Status();
}

}  // namespace
}  // namespace plow

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IONBF, 0);
  if (argc < 4) {
    fmt::print("usage: gpu_decode_bench SHAPE CONTEXT STEPS [plain] [trace] [chunk=ROWS] [rows=SEQUENCES]\n");
    return 2;
  }
  plow::BenchOptions options;
  options.context = static_cast<uint32_t>(std::atoi(argv[2]));
  options.steps = static_cast<uint32_t>(std::atoi(argv[3]));
  for (int i = 4; i < argc; ++i) {
    if (std::string_view(argv[i]) == "plain") options.rewrites = false;
    if (std::string_view(argv[i]) == "trace") options.trace = true;
    if (std::string_view(argv[i]).starts_with("chunk=")) options.chunk_rows = static_cast<uint32_t>(std::atoi(argv[i] + 6));
    if (std::string_view(argv[i]).starts_with("rows=")) options.rows = static_cast<uint32_t>(std::atoi(argv[i] + 5));
  }
  for (const plow::ModelShape& shape : plow::kShapes) {
    if (std::string_view(shape.name) != argv[1]) continue;
    const plow::Status status = plow::run(shape, options);
    if (!status.ok()) fmt::print("error: {}\n", status.error().message);
    return status.ok() ? 0 : 1;
  }
  fmt::print("no shape {}\n", argv[1]);
  return 2;
}
