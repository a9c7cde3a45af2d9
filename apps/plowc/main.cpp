// plowc: checkpoint -> bundle, and what is in a bundle. Only the command line is here.
#include "console/command_line.h"
#include "console/host.h"
#include "cost/part.h"
#include "plowc/compile_command.h"
#include "plowc/explain_command.h"
#include "plowc/tune_command.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <limits>
#include <string>
#include <vector>

namespace plow {

namespace {

struct Arguments {
  // compile
  std::string checkpoint, positional, out;
  std::string arch, kv_dtype = "bf16", weight_dtype;
  CompileOptions compile;
  std::vector<std::string> no_rewrite;
  bool no_verify = false, json = false, list_archs = false, list_gpus = false;
  TuneSource source;
  TuneOptions tune;
  // explain and viz
  std::string bundle, other, stage, packet, page;
};

constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();

std::vector<std::string> arch_names() {
  return {
#define PLOW_ISA(number, Name, text, vendor) text,
#include "abi/isas.def"
  };
}

Isa arch_of(const std::string& name) {
#define PLOW_ISA(number, Name, text, vendor) \
  if (name == (text)) return Isa::k##Name;
#include "abi/isas.def"
  PLOW_CHECK(false, "{} is not in isas.def", name);
}

// The instruction set of the machine that this program runs on; empty when plow has no interpreter for it.
constexpr const char* kLocalArch =
#if defined(__x86_64__)
    "x86-64";
#else
    "";
#endif

void print_archs(bool gpus) {
  size_t listed = 0;
  const auto print = [&](const char* name, std::string_view vendor) {
    if (gpus == (vendor == "cpu")) return;
    fmt::print("{}{}\n", name, std::string_view(name) == kLocalArch ? "  (this machine)" : "");
    ++listed;
  };
#define PLOW_ISA(number, Name, text, vendor) print(text, vendor);
#include "abi/isas.def"
  if (listed == 0) fmt::print("This build of plowc compiles for no GPU. See --list-archs.\n");
}

void add_compile_options(CLI::App& app, Arguments& a) {
  app.add_option("DIR", a.positional,
                 "The checkpoint: a directory with config.json and safetensors, or a .gguf file");
  app.add_option("--hf-dir", a.checkpoint, "The same, by name");
  app.add_option("--out", a.out, "The bundle's directory [NAME.plow, here]");
  // The names would fill the line; they are listed by options of their own.
  app.add_option("--arch", a.arch,
                 "Instruction set to compile for, of --list-archs or --list-gpus [this machine's]")
      ->check(CLI::IsMember(arch_names()).description(""));
  app.add_option("--max-ctx", a.compile.max_context,
                 "Tokens that a sequence may have [2048, or the checkpoint's if less]")
      ->check(CLI::Range(1u, kMost));
  app.add_option("--slots", a.compile.max_slots, "Sequences that may be in the cache at once")
      ->check(CLI::Range(1u, 65535u))
      ->capture_default_str();
  app.add_option("--chunk", a.compile.chunk_rows, "Most rows of a step that processes prompts")
      ->check(CLI::Range(1u, 65535u))
      ->capture_default_str();
  app.add_flag("--batch-invariant", a.compile.batch_invariant,
               "Give a row the same bits whatever shares its step, on GPUs, too, where prompts then take several times as long");
  a.compile.n_workers = 0;
  app.add_option("--workers", a.compile.n_workers,
                 "Cores or multiprocessors that run packets [all that this process may use, or of the GPU]")
      ->check(CLI::Range(1u, 65535u));
  app.add_option("--kv-dtype", a.kv_dtype, "Type of keys and values in the cache")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  app.add_option("--weight-dtype", a.weight_dtype,
                 "Type of the matrices [as in the checkpoint; of blocks, Q8_0 and Q4_0 on x86-64, others bf16]")
      ->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--served-name", a.compile.served_name,
                 "Name of the model for those who use it [the checkpoint's]");
  app.add_flag("--no-rewrite", a.no_rewrite,
               "Switch the rewriter off, or some of its rules (--no-rewrite=RULE,RULE)");
  app.add_option("--part", a.source.part, "Predict times for a part that ships, by name, and use no tunedb");
  app.add_option("--tunedb", a.source.file, "Where 'plowc tune' keeps what it measured [in the user's data]");
  app.add_flag("--no-tunedb", a.source.none, "Use the part as it ships and no tuned settings");
  app.add_flag("--force", a.compile.replace, "Replace a bundle that is there already");
  app.add_flag("--no-verify", a.no_verify,
               "Write a bundle that plow_verify has not seen; plowrt runs it with --no-receipt only");
  app.add_flag("--json", a.json, "Print events as JSON, one object a line");
  app.add_flag("--list-archs", a.list_archs, "List the instruction sets that plowc compiles for, and stop");
  app.add_flag("--list-gpus", a.list_gpus, "List the GPUs that plowc compiles for, and stop");
}

struct Commands {
  CLI::App *explain, *why, *diff, *viz;
  CLI::App *tune, *calibrate, *status, *show, *best, *export_rows;
};

void add_tune_options(CLI::App* command, Arguments& a) {
  command->add_option("--tunedb", a.tune.source.file, "The database [in the user's data]");
  command->add_option("--workers", a.tune.n_workers, "Workers [all cores that this process may use]")
      ->check(CLI::Range(1u, 1024u));
  command->add_option("--isa", a.tune.level, "Instruction set level")
      ->check(CLI::IsMember({"auto", "avx2", "avx512", "avx512-bf16"}))
      ->capture_default_str();
  command->add_flag("--json", a.tune.json, "Print JSON");
}

CLI::App* add_tune_command(CLI::App& tune, Arguments& a, const char* name, const char* text) {
  CLI::App* command = tune.add_subcommand(name, text);
  add_tune_options(command, a);
  return command;
}

void add_tune_commands(CLI::App& app, Arguments& a, Commands& commands) {
  commands.tune =
      app.add_subcommand("tune", "Measure this machine, look for better settings, show what was found");
  commands.tune->add_option("BUNDLE", a.tune.bundle, "The bundle to look for better settings for");
  commands.tune->add_option("--hf-dir", a.tune.checkpoint,
                            "Or a checkpoint, which is compiled for this and thrown away");
  commands.tune->add_option("--what", a.tune.what, "Which steps to make faster")
      ->check(CLI::IsMember({"decode", "prefill", "both"}))
      ->capture_default_str();
  commands.tune->add_option("--seconds", a.tune.seconds, "About how long [300]")
      ->check(CLI::Range(1.0, 86400.0));
  add_tune_options(commands.tune, a);
  commands.tune->require_subcommand(0, 1);
  commands.calibrate = add_tune_command(*commands.tune, a, "calibrate",
                                        "Measure the figures of the cost model, in about a minute");
  commands.calibrate->add_option("--seconds", a.tune.seconds, "About how long [60]")
      ->check(CLI::Range(1.0, 3600.0));
  commands.status = add_tune_command(*commands.tune, a, "status",
                                     "Which machines and how many settings are in the database");
  commands.show = add_tune_command(*commands.tune, a, "show", "The figures of this machine");
  commands.best = add_tune_command(*commands.tune, a, "best",
                                   "The settings of this machine that were better than the default");
  commands.export_rows = add_tune_command(*commands.tune, a, "export", "Everything in the database as JSON");
  commands.export_rows->add_option("-o,--output", a.tune.output, "The file [the terminal]");
}

Commands add_commands(CLI::App& app, Arguments& a) {
  Commands commands{};
  commands.explain = app.add_subcommand(
      "explain", "Print a stage of a bundle, where a packet comes from, or how two bundles differ");
  commands.explain->add_option("BUNDLE", a.bundle, "The bundle's directory");
  commands.explain->add_option("--stage", a.stage, "Which stage of the road to print")
      ->check(CLI::IsMember(stage_names()));
  commands.explain->footer(
      "Examples:\n  plowc explain model.plow --stage schedule\n  plowc explain why model.plow 0:17\n  plowc "
      "explain diff a.plow b.plow");
  commands.why = commands.explain->add_subcommand(
      "why", "Packet -> tile -> operator -> tensors; what it waits for and who signals that");
  commands.why->add_option("BUNDLE", a.bundle, "The bundle's directory")->required();
  commands.why->add_option("PACKET", a.packet, "PROGRAM:PACKET, or PROGRAM:WORKER:INDEX")->required();
  commands.diff = commands.explain->add_subcommand(
      "diff", "Compare stage by stage, stop at the first difference (exit code 1)");
  commands.diff->add_option("A", a.bundle, "A bundle's directory")->required();
  commands.diff->add_option("B", a.other, "Another")->required();
  commands.viz = app.add_subcommand("viz", "Write a page that shows the schedule; it needs no network");
  commands.viz->add_option("BUNDLE", a.bundle, "The bundle's directory")->required();
  commands.viz->add_option("-o,--output", a.page, "The page to write")->required();
  add_tune_commands(app, a, commands);
  return commands;
}

std::filesystem::path default_out(const std::filesystem::path& checkpoint) {
  std::filesystem::path named = std::filesystem::absolute(checkpoint).lexically_normal();
  if (!named.has_filename()) named = named.parent_path();
  return (named.extension() == ".gguf" ? named.stem() : named.filename()).string() + ".plow";
}

DType dtype_of(const std::string& name) { return name == "f32" ? DType::kF32 : DType::kBf16; }

Result<int> run_compile(Arguments& a) {
  if (!a.checkpoint.empty() && !a.positional.empty()) {
    return usage_error(
        fmt::format("two checkpoints were given, {} and {}. Give one.", a.positional, a.checkpoint));
  }
  if (a.checkpoint.empty()) a.checkpoint = a.positional;
  if (a.checkpoint.empty())
    return usage_error("no checkpoint was given. Try: plowc --hf-dir DIR --out BUNDLE, or plowc --help.");
  if (a.arch.empty()) a.arch = kLocalArch;
  if (a.arch.empty())
    return usage_error("there is no interpreter for this machine. Give --arch; --list-archs lists them.");
  a.compile.isa = arch_of(a.arch);
  a.compile.checkpoint = a.checkpoint;
  a.compile.out = a.out.empty() ? default_out(a.checkpoint) : std::filesystem::path(a.out);
  if (a.compile.n_workers == 0) a.compile.n_workers = default_part(a.compile.isa).n_workers;
  if (a.compile.n_workers == 0) a.compile.n_workers = read_host_facts().cores;
  a.compile.kv_dtype = dtype_of(a.kv_dtype);
  if (!a.weight_dtype.empty()) a.compile.weight_dtype = dtype_of(a.weight_dtype);
  for (const std::string& rule : a.no_rewrite) {
    if (rule == "true") {  // CLI11's value of a flag that is given without one
      a.compile.rewrite = false;
    } else {
      const std::vector<std::string> names = CLI::detail::split(rule, ',');
      a.compile.disabled_rules.insert(a.compile.disabled_rules.end(), names.begin(), names.end());
    }
  }
  if (!a.no_verify) a.compile.verifier = program_folder() / "plow_verify";
  PLOW_TRY(ChosenPlan chosen, choose_plan(a.source, a.compile.isa, a.compile.n_workers));
  a.compile.plan = std::move(chosen.plan);
  PLOW_TRY_STATUS(compile_command(a.compile, chosen.note, a.json));
  return 0;
}

Status run_tune(const Commands& commands, const Arguments& a) {
  if (commands.calibrate->parsed()) return tune_calibrate(a.tune);
  if (commands.status->parsed()) return tune_status(a.tune);
  if (commands.show->parsed()) return tune_show(a.tune);
  if (commands.best->parsed()) return tune_best(a.tune);
  if (commands.export_rows->parsed()) return tune_export(a.tune);
  if (!a.tune.bundle.empty() || !a.tune.checkpoint.empty()) return tune_bundle(a.tune);
  return usage_error(
      "tune needs a bundle or --hf-dir, or one of calibrate, status, show, best and export. Run 'plowc tune "
      "--help'.");
}

Result<int> dispatch(const Commands& commands, Arguments& a) {
  if (commands.diff->parsed()) return explain_diff(a.bundle, a.other);
  if (commands.why->parsed()) {
    PLOW_TRY_STATUS(explain_why(a.bundle, a.packet));
  } else if (commands.explain->parsed()) {
    if (a.bundle.empty() || a.stage.empty()) {
      return usage_error(
          "explain needs a bundle and --stage, or one of why and diff. Run 'plowc explain --help' for "
          "examples.");
    }
    PLOW_TRY_STATUS(explain_stage(a.bundle, a.stage));
  } else if (commands.tune->parsed()) {
    PLOW_TRY_STATUS(run_tune(commands, a));
  } else if (commands.viz->parsed()) {
    PLOW_TRY_STATUS(write_viz(a.bundle, a.page));
  } else if (a.list_archs || a.list_gpus) {
    print_archs(a.list_gpus);
  } else {
    return run_compile(a);
  }
  return 0;
}

int run_plowc(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Compiles a language model's checkpoint into a bundle of packets that plowrt runs.", "plowc");
  app.set_version_flag("--version", fmt::format("plowc {} (bundle format {})", PLOW_VERSION, kAbiVersion));
  app.footer(
      "Every option can be given as an environment variable: PLOW_MAX_CTX for --max-ctx.\n"
      "Exit codes: 0, 2 usage, 3 input, 4 does not fit, 5 device, 6 verification.\n\n"
      "Examples:\n"
      "  plowc --hf-dir SmolLM2-135M-Instruct --arch x86-64 --max-ctx 2048 --out smollm2.plow\n"
      "  plowc model.gguf --kv-dtype f32\n"
      "  plowc explain smollm2.plow --stage tiles\n"
      "  plowc viz smollm2.plow -o schedule.html");
  add_compile_options(app, arguments);
  const Commands commands = add_commands(app, arguments);
  finish_options(app);
  return run_command_line(app, argc, argv, [&] { return dispatch(commands, arguments); });
}

}  // namespace

}  // namespace plow

int main(int argc, char** argv) { return plow::run_plowc(argc, argv); }
