// The compiler's table of contents: checkpoint -> OpGraph -> (rewrite) OpGraph -> TileGraph -> Schedule -> PacketStream -> Bundle.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/header.h"
#include "base/error.h"
#include "bundle/bundle.h"
#include "checkpoint/checkpoint.h"
#include "compile/plan.h"
#include "graph/graph.h"
#include "rewrite/rewrite.h"
#include "schedule/schedule.h"
#include "tile/tile_graph.h"

namespace plow {

// The cache takes this many positions for each of max_slots sequences; who wants longer ones says so.
inline constexpr uint32_t kDefaultContext = 2048;

struct CompileOptions {
  std::filesystem::path checkpoint;   // a directory with config.json and safetensors, or a .gguf file
  std::filesystem::path out;          // the bundle's directory; appears whole or not at all
  bool replace = false;               // an existing bundle may be replaced
  Isa isa = Isa::kX86_64;
  uint32_t n_workers = 1;
  std::optional<uint32_t> max_context;  // positions a sequence; unset: kDefaultContext, or what the checkpoint declares when that is less
  uint32_t max_slots = 16;            // sequences at once
  uint32_t chunk_rows = 512;          // most rows of a step of the many-rows program
  // A row has the same bits in every step: GPUs process prompts without tiles of many rows, more slowly. (On x86-64 it always has.)
  bool batch_invariant = false;
  DType kv_dtype = DType::kBf16;
  std::optional<DType> weight_dtype;  // matrices; unset: as the checkpoint has them (see has_block_bodies; bf16 for other blocks)
  std::string served_name;            // empty: the checkpoint's directory name
  std::vector<std::string> disabled_rules;  // of the rewriter
  bool rewrite = true;
  std::filesystem::path verifier;  // plow_verify, whose receipt the bundle gets; empty: nothing is verified, and a runtime refuses the bundle
  // The part, and settings of which those that apply are used. Unset: default_plan(isa).
  std::optional<Plan> plan;
};

// What is known before the work starts.
struct CompileSummary {
  std::string architecture;
  std::string served_name;
  uint32_t n_layers = 0, hidden = 0, vocab = 0;
  uint64_t parameters = 0;
  uint64_t checkpoint_bytes = 0;
  uint64_t tape_bytes = 0;
  std::string weight_dtypes;  // "bf16", or "bf16, f32"
  uint32_t declared_context = 0;  // of the checkpoint
  uint32_t max_context = 0;       // of the bundle
  std::string part;  // that times are predicted for
  size_t settings = 0;  // of the tuner that are used
  std::vector<std::string> unproved_rules;  // of the rewriter: they have no theorem, and never fire
  MemoryPlan memory;              // at max_slots sequences of max_context
};

// Told how far a compile is. Calls come from the compiling thread, `done` grows from 0 to `total` (bytes or items) within a stage.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  virtual void summary(const CompileSummary& summary) = 0;
  virtual void stage(std::string_view name, uint64_t done, uint64_t total) = 0;
  // Asked between pieces of work; true stops the compile, which then leaves nothing behind.
  virtual bool cancelled() const = 0;
};

struct CompileResult {
  uint64_t packets = 0, tape_bytes = 0, model_bytes = 0;
  double predicted_decode_ns = 0;
  std::string digest;  // of model.pkt
  bool verified = false;
};

// Compiles, verifies and writes the bundle. Errors: by class, nothing half-written.
Result<CompileResult> compile_model(const CompileOptions& options, ProgressSink& progress);

// The graph as it is tiled, by the options' target, rules and `rewrite`: what the target's interpreter has no body of is not made. The log is replayed,
// so that what goes on is shown to compute what the model did.
Result<RewriteResult> rewrite_model(const OpGraph& graph, const CompileOptions& options, const Part& part);

// The stages between graph and packets for one program, re-derivable from what a bundle holds (explain, viz and reschedule use it).
struct ProgramStages {
  TileGraph tiles;
  Schedule schedule;
  ProgramTables tables;
};

// All programs of a bundle for a graph that has been rewritten: few rows first, then many.
Result<std::vector<ProgramStages>> build_programs(const OpGraph& graph, uint32_t n_workers, uint32_t chunk_rows,
                                                  uint32_t max_slots, const Plan& plan);

// Scratch that the bodies of the programs ask for, the most of any packet: BundleHeader::scratch_bytes.
uint64_t scratch_bytes(const std::vector<ProgramStages>& programs, Isa isa);

// What the bundle was compiled by; of a bundle without a record of it, the ISA's default. Errors (kInput): a record that is not one.
Result<Plan> plan_of(const BundleFile& bundle);

// The graph and the stages of a bundle, derived again from its graph text and header. Errors (kVerification) when the packets that come out are not
// the bundle's own.
struct BundleStages {
  OpGraph graph;
  std::vector<ProgramStages> programs;
};
Result<BundleStages> derive_stages(const BundleFile& bundle);

}  // namespace plow
