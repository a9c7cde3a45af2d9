// Read top down: this is the order of the road.

#include "compile/pipeline.h"

#include <algorithm>
#include <boost/json.hpp>
#include <set>

#include "bundle/predictions.h"
#include "bundle/receipt.h"
#include "compile/predict_programs.h"
#include "compile/programs.h"
#include "compile/run_verifier.h"
#include "compile/text_files.h"
#include "compile/write_tape.h"
#include "isa/gpu/support.h"
#include "isa/x86_64/interpreter.h"
#include "models/models.h"
#include "packet/kv_plan.h"
#include "rewrite/log.h"
#include "rewrite/rewrite.h"
#include "rewrite/rule.h"

namespace plow {

namespace {

namespace json = boost::json;

// What the stages before the bytes have made.
struct Compiled {
  Checkpoint checkpoint;
  RewriteResult rewritten;
  Plan plan;
  std::vector<ProgramStages> programs;
  TapePlan tape;
  KvPlan kv;
  std::string served_name;
  uint32_t max_context = 0;
};

Status check_options(const CompileOptions& options) {
  const auto refuse = [](const std::string& message) { return usage_error(message); };
  if (options.max_context == 0u) return refuse("the context must have at least one position (--max-ctx)");
  if (options.max_slots == 0 || options.max_slots > kMaxSlots) {
    return refuse(fmt::format("a bundle has 1 to {} slots, not {} (--slots)", kMaxSlots, options.max_slots));
  }
  if (options.n_workers == 0 || options.n_workers > kMaxWorkers) {
    return refuse(fmt::format("a bundle has 1 to {} workers, not {} (--workers)", kMaxWorkers, options.n_workers));
  }
  if (options.chunk_rows == 0 || options.chunk_rows > kMaxChunkRows) {
    return refuse(fmt::format("a step has 1 to {} rows, not {} (--chunk)", kMaxChunkRows, options.chunk_rows));
  }
  if (!options.verifier.empty()) return check_verifier(options.verifier);
  return {};
}

std::string default_name(const std::filesystem::path& checkpoint) {
  std::filesystem::path path = std::filesystem::absolute(checkpoint).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  // A folder that is only called "checkpoint" takes the name of the folder around it.
  if (path.filename() == "checkpoint" && path.has_parent_path()) path = path.parent_path();
  return path.extension() == ".gguf" ? path.stem().string() : path.filename().string();
}

// checkpoint -> OpGraph -> OpGraph -> (TileGraph -> Schedule -> packets) for every program. Each product is verified before the next is made.
Result<Compiled> run_stages(const CompileOptions& options, ProgressSink& progress) {
  Compiled compiled;
  compiled.plan = options.plan.value_or(default_plan(options.isa));
  if (compiled.plan.part.isa != options.isa) {
    return usage_error(fmt::format("the part {} is of {}, and the bundle is for {} (--part)", compiled.plan.part.name,
                                   isa_name(compiled.plan.part.isa), isa_name(options.isa)));
  }
  progress.stage("checkpoint", 0, 1);
  PLOW_TRY(compiled.checkpoint, load_checkpoint(options.checkpoint));
  compiled.served_name = options.served_name.empty() ? default_name(options.checkpoint) : options.served_name;
  progress.stage("graph", 0, 1);
  PLOW_TRY(const OpGraph graph, build_model(compiled.checkpoint, {options.kv_dtype, options.weight_dtype, has_block_bodies(options.isa)}));
  PLOW_TRY_STATUS(verify_graph(graph));
  compiled.max_context = options.max_context.value_or(std::min(kDefaultContext, graph.max_position));
  if (compiled.max_context > graph.max_position) {
    return usage_error(fmt::format("{} positions were asked for (--max-ctx), but the checkpoint was trained for {}; ask for {} or fewer",
                                   compiled.max_context, graph.max_position, graph.max_position));
  }
  progress.stage("rewrite", 0, 1);
  PLOW_TRY(compiled.rewritten, rewrite_model(graph, options, compiled.plan.part));
  progress.stage("programs", 0, 1);
  compiled.plan.settings = settings_for(compiled.rewritten.graph, compiled.plan.settings);
  if (options.batch_invariant && options.isa != Isa::kX86_64) make_batch_invariant(compiled.rewritten.graph, compiled.plan.settings);
  PLOW_TRY(compiled.programs, build_programs(compiled.rewritten.graph, options.n_workers, options.chunk_rows, options.max_slots,
                                             compiled.plan));
  compiled.tape = plan_tape(compiled.rewritten.graph, options.isa);
  compiled.kv = plan_kv(compiled.rewritten.graph, options.isa);
  progress.stage("programs", 1, 1);
  return compiled;
}

// The name under which the family is known, as config.json says it. REQUIRES a checkpoint that a model was built from.
std::string architecture_of(const Checkpoint& checkpoint) { return *checkpoint.config.find("architectures")->as_array()->front().as_string(); }

// What the compile was, for people and for comparing two bundles: nothing of time or place, so that the same inputs give the same bytes from
// whatever folder. A name that was not given is the bundle's folder's when it is served.
std::string build_record(const CompileOptions& options, const Compiled& compiled) {
  json::object record;
  record["plow"] = "0.1.0";
  record["architecture"] = architecture_of(compiled.checkpoint);
  if (!options.served_name.empty()) record["served_name"] = options.served_name;
  record["isa"] = isa_name(options.isa);
  record["workers"] = options.n_workers;
  record["max_context"] = compiled.max_context;
  record["max_slots"] = options.max_slots;
  record["chunk_rows"] = options.chunk_rows;
  record["kv_dtype"] = dtype_name(options.kv_dtype);
  if (options.batch_invariant) record["batch_invariant"] = true;
  record["rewrite"] = options.rewrite;
  if (!options.disabled_rules.empty()) {
    record["disabled_rules"] = json::array(options.disabled_rules.begin(), options.disabled_rules.end());
  }
  record["plan"] = plan_to_json(compiled.plan);
  record["predictions"] = predictions_to_json(predict_programs(compiled.rewritten.graph, compiled.programs, compiled.plan.part,
                                                               compiled.max_context));
  return json::serialize(record) + "\n";
}

BundleTables bundle_tables(const CompileOptions& options, const Compiled& compiled) {
  BundleTables tables;
  const OpGraph& graph = compiled.rewritten.graph;
  BundleHeader& header = tables.header;
  header.isa = options.isa;
  header.n_workers = options.n_workers;
  header.tape_bytes = compiled.tape.bytes;
  header.vocab = graph.vocab;
  header.max_context = compiled.max_context;
  header.max_slots = options.max_slots;
  header.kv_dtype = options.kv_dtype;
  header.n_layers = graph.n_layers;
  header.hidden = graph.hidden;
  header.scratch_bytes = static_cast<uint32_t>(scratch_bytes(compiled.programs, options.isa));
  for (const ProgramStages& program : compiled.programs) tables.programs.push_back(program.tables);
  tables.kv_groups = compiled.kv.groups;
  tables.sources = planned_sources(graph, compiled.tape);
  tables.graph_text = print_graph(graph);
  tables.rewrite_log = compiled.rewritten.log;
  tables.build_record = build_record(options, compiled);
  return tables;
}

Result<MemoryPlan> memory_of(const BundleTables& tables) {
  PLOW_TRY(const BundleFile bundle, BundleFile::from_bytes(serialise_bundle(tables)));
  return plan_memory(bundle, tables.header.max_slots, tables.header.max_context);
}

Result<CompileSummary> summarise(const Compiled& compiled, const BundleTables& tables) {
  CompileSummary summary;
  const OpGraph& graph = compiled.rewritten.graph;
  summary.architecture = architecture_of(compiled.checkpoint);
  summary.served_name = compiled.served_name;
  summary.n_layers = graph.n_layers;
  summary.hidden = graph.hidden;
  summary.vocab = graph.vocab;
  summary.declared_context = graph.max_position;
  summary.max_context = compiled.max_context;
  summary.part = compiled.plan.part.name;
  summary.settings = compiled.plan.settings.size();
  summary.unproved_rules = unproved_rules(rule_texts());
  summary.tape_bytes = compiled.tape.bytes;
  std::set<std::string> dtypes;
  for (const TapeTensor& tensor : compiled.tape.tensors) {
    if (graph.node(tensor.node).op != Op::kWeight) continue;
    summary.parameters += uint64_t{tensor.rows} * tensor.cols;
    if (tensor.layout == layout_of_matrices(tables.header.isa, tensor.dtype)) dtypes.insert(dtype_name(tensor.dtype));
  }
  for (const std::string& dtype : dtypes) summary.weight_dtypes += (summary.weight_dtypes.empty() ? "" : ", ") + dtype;
  for (const CheckpointTensor& tensor : compiled.checkpoint.tensors) summary.checkpoint_bytes += tensor.bytes.size();
  PLOW_TRY(summary.memory, memory_of(tables));
  return summary;
}

// The network's slug and where every byte of the tape came from.
std::string weights_json(const CompileSummary& summary, const WrittenTape& tape) {
  json::object root;
  root["network"] = fmt::format("{}-{}x{}", summary.architecture, summary.n_layers, summary.hidden);
  json::array tensors;
  for (const SourceRecord& source : tape.sources) {
    json::object entry;
    entry["name"] = source.name;
    entry["offset"] = source.tape_offset;
    entry["bytes"] = source.tape_bytes;
    entry["xxh3"] = to_hex(Digest128{source.digest_low, source.digest_high});
    tensors.push_back(std::move(entry));
  }
  root["tensors"] = std::move(tensors);
  return json::serialize(root) + "\n";
}

// plow_verify reads the bytes that were written, and its receipt goes with them.
Status write_receipt(const CompileOptions& options, std::span<const std::byte> model, const StagedDirectory& directory,
                     ProgressSink& progress) {
  progress.stage("verify", 0, 1);
  PLOW_TRY(const std::string text, run_verifier(options.verifier, directory.path() / "model.pkt", [&] { return progress.cancelled(); }));
  PLOW_TRY(const Receipt receipt, parse_receipt(text));
  if (const Status status = check_receipt(receipt, model); !status.ok()) {
    return status.error().at("this is a fault of plowc, and nothing was written (--no-verify writes such a bundle)");
  }
  PLOW_TRY_STATUS(directory.write_file("verify.json", text));
  progress.stage("verify", 1, 1);
  return {};
}

}  // namespace

Result<RewriteResult> rewrite_model(const OpGraph& graph, const CompileOptions& options, const Part& part) {
  RewriteOptions rewriting;
  rewriting.enabled = options.rewrite;
  rewriting.disabled_rules = options.disabled_rules;
  // What a GPU's interpreter has no body of is not made for it.
  if (options.isa != Isa::kX86_64) {
    for (std::string& rule : rules_that_need_more(gpu::has_body)) rewriting.disabled_rules.push_back(std::move(rule));
  }
  rewriting.part = &part;
  rewriting.n_workers = options.n_workers;
  rewriting.chunk_rows = options.chunk_rows;
  PLOW_TRY(RewriteResult result, rewrite_graph(graph, rewriting));
  PLOW_TRY_STATUS(verify_graph(result.graph));
  if (!rewriting.enabled) return result;
  PLOW_TRY(const RewriteLog log, parse_rewrite_log(result.log));
  PLOW_TRY_STATUS(check_rewrite_log(log, result.graph));
  return result;
}

uint64_t scratch_bytes(const std::vector<ProgramStages>& programs, Isa isa) {
  uint64_t most = 0;
  for (const ProgramStages& program : programs) {
    const ProgramEntry& entry = program.tables.entry;
    const uint32_t row_tile = std::max(entry.token_row_tile, entry.sample_row_tile);
    for (const Packet& packet : program.tables.packets) {
      const TensorEntry* tensors = program.tables.tensors.data();
      most = std::max(most, isa == Isa::kX86_64 ? body_scratch_bytes(packet, tensors, row_tile) : gpu::body_scratch_bytes(packet, tensors));
    }
  }
  return most;
}

Result<CompileResult> compile_model(const CompileOptions& options, ProgressSink& progress) {
  PLOW_TRY_STATUS(check_options(options));
  PLOW_TRY(const Compiled compiled, run_stages(options, progress));
  BundleTables tables = bundle_tables(options, compiled);
  PLOW_TRY(const CompileSummary summary, summarise(compiled, tables));
  progress.summary(summary);
  if (progress.cancelled()) return input_error("the compile was interrupted before it wrote anything");

  PLOW_TRY(auto directory, StagedDirectory::create(options.out, options.replace));
  PLOW_TRY_STATUS(write_text_files(compiled.checkpoint, directory));
  PLOW_TRY(const WrittenTape tape, write_tape(compiled.rewritten.graph, compiled.tape, compiled.checkpoint, directory, progress));
  tables.sources = tape.sources;
  tables.header.tape_digest_low = tape.digest.low;
  tables.header.tape_digest_high = tape.digest.high;

  progress.stage("bundle", 0, 1);
  const std::vector<std::byte> model = serialise_bundle(tables);
  PLOW_TRY_STATUS(directory.write_file("model.pkt", model));
  PLOW_TRY_STATUS(directory.write_file("weights.json", weights_json(summary, tape)));
  if (auto reread = BundleFile::open(directory.path() / "model.pkt"); !reread.ok()) return reread.error();
  progress.stage("bundle", 1, 1);
  const bool verified = !options.verifier.empty();
  if (verified) PLOW_TRY_STATUS(write_receipt(options, model, directory, progress));
  if (progress.cancelled()) return input_error("the compile was interrupted");
  PLOW_TRY_STATUS(directory.commit());

  CompileResult result;
  for (const ProgramTables& program : tables.programs) result.packets += program.packets.size();
  result.tape_bytes = compiled.tape.bytes;
  result.model_bytes = model.size();
  result.predicted_decode_ns = compiled.programs[0].schedule.predicted_ns;
  result.digest = to_hex(xxh3_128(model));
  result.verified = verified;
  return result;
}

}  // namespace plow
