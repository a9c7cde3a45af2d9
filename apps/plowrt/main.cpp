// plowrt: bundle -> answers. Only the command line is here.
#include "abi/header.h"
#include "console/command_line.h"
#include "console/completion.h"
#include "console/config_file.h"
#include "isa/x86_64/interpreter.h"
#include "plowrt/bench_command.h"
#include "plowrt/bench_serve.h"
#include "plowrt/bench_startup.h"
#include "plowrt/chat_command.h"
#include "plowrt/doctor.h"
#include "plowrt/inspect_commands.h"
#include "plowrt/run_command.h"
#include "plowrt/serve_command.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string>

namespace plow {

namespace {

constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();

struct Arguments {
  std::string assets;
  std::optional<uint32_t> slots, context;   // plan
  std::optional<uint32_t> program, worker;  // disasm
  EngineOptions engine;                     // chat, run, bench
  std::string system, isa = "auto";
  uint32_t max_tokens = 0;
  SamplingOptions sampling;
  RunOptions run;
  BenchOptions bench;
  ServeOptions serve;
  PsOptions ps;
  ServeLoad load;
  StartupBench startup;
  std::string shell;  // completion
  bool json = false;
};

struct Commands {
  CLI::App *chat, *run, *serve, *ps, *load, *unload, *completion, *bench, *decode, *prefill, *bench_serve,
      *startup, *plan, *doctor, *disasm;
};

CLI::Option* add_assets(CLI::App* command, Arguments& a) {
  return command->add_option("--assets", a.assets, "The bundle's directory");
}

void add_device_options(CLI::App* command, Arguments& a) {
  command->add_option("--device", a.engine.device, "cpu, cuda:N or hsa:N [what the bundle was compiled for]");
  command
      ->add_option("--threads", a.engine.threads,
                   "Threads that run packets [the bundle's workers; another number is refused]")
      ->check(CLI::Range(1u, 65535u));
  command
      ->add_option("--isa", a.isa,
                   "Instructions to use [the best of this processor whose products are exact]")
      ->check(CLI::IsMember({"auto", "avx2", "avx512", "avx512-bf16"}));
  command->add_flag("--pin", a.engine.pin, "Keep each worker on a processor of its own");
  command->add_flag_callback(
      "--no-receipt", [&a] { a.engine.require_receipt = false; },
      "Run a bundle although plow_verify has not accepted it");
  command->add_flag("--verify-weights", a.engine.verify_tape,
                    "Read all weights first and compare their digest");
}

void add_engine_options(CLI::App* command, Arguments& a) {
  add_assets(command, a)->required();
  add_device_options(command, a);
}

void add_sampling_options(CLI::App* command, Arguments& a) {
  // The ranges are those of set_sampling(), so that /set in a chat and the flags agree.
  const auto add = [command, &a](const std::string& name, const char* type, const char* help) {
    command
        ->add_option_function<std::string>(
            "--" + name,
            [&a, name](const std::string& value) {
              const Status status = set_sampling(a.sampling, name, value);
              if (!status.ok()) throw CLI::ValidationError(status.error().message);
            },
            help)
        ->type_name(type);
  };
  add("temperature", "X", "0: always the likeliest token [as the checkpoint recommends]");
  add("top-k", "N", "Draw from the N likeliest tokens; 0: from all");
  add("top-p", "X", "Draw from the likeliest tokens that together have probability X");
  add("min-p", "X", "Leave out tokens less likely than X times the likeliest");
  add("repetition-penalty", "X", "Above 1: tokens that were there already become less likely");
  add("presence-penalty", "X", "Subtracted from the logit of tokens that the answer has");
  add("frequency-penalty", "X", "The same, for each time");
  add("seed", "N", "The same seed gives the same answer [another one for each run]");
}

void add_chat(CLI::App& app, Arguments& a, Commands& commands) {
  commands.chat = app.add_subcommand("chat", "A conversation in the terminal; /help lists its commands");
  add_engine_options(commands.chat, a);
  commands.chat->add_option("--system", a.system, "The system message");
  commands.chat->add_option("--ctx", a.engine.context, "Tokens of the conversation [as compiled]")
      ->check(CLI::Range(1u, kMost));
  commands.chat->add_option("--max-tokens", a.max_tokens, "Most tokens of an answer [1024]")
      ->check(CLI::Range(1u, kMost));
  add_sampling_options(commands.chat, a);
  commands.chat->footer("Example:\n  plowrt chat --assets smollm2.plow --temperature 0.7");
}

void add_run(CLI::App& app, Arguments& a, Commands& commands) {
  commands.run = app.add_subcommand("run", "Answer one prompt");
  add_engine_options(commands.run, a);
  commands.run->add_option("--prompt", a.run.prompt, "The message");
  commands.run->add_option("--prompt-file", a.run.prompt_file, "A file with the message; -: standard input");
  commands.run->add_option("--system", a.system, "The system message");
  commands.run->add_option("--ctx", a.engine.context, "Tokens of prompt and answer [as compiled]")
      ->check(CLI::Range(1u, kMost));
  commands.run->add_option("--max-tokens", a.max_tokens, "Most tokens of the answer [256]")
      ->check(CLI::Range(1u, kMost));
  add_sampling_options(commands.run, a);
  commands.run->add_flag("--raw", a.run.raw, "Continue the prompt as it is, without the chat template");
  commands.run->add_flag("--ignore-eos", a.run.ignore_eos, "Go on after the token that ends an answer");
  commands.run->add_flag("--json", a.json,
                         "Print one JSON object: text, tokens, logprobs, finish_reason, timings");
  commands.run->footer(
      "Examples:\n"
      "  plowrt run --assets smollm2.plow --prompt 'What is a prime number?' --temperature 0\n"
      "  plowrt run --assets gemma.plow --raw --prompt 'Once upon a time' --max-tokens 64\n"
      "  git diff | plowrt run --assets qwen.plow --prompt-file - --json");
}

void add_serve(CLI::App& app, Arguments& a, Commands& commands) {
  CLI::App* serve = commands.serve = app.add_subcommand("serve", "Answer over HTTP, as OpenAI's API does");
  ServeOptions& o = a.serve;
  serve->add_option("--assets", o.bundles, "A bundle's directory; again for each further model")
      ->required()
      ->delimiter(',');
  add_device_options(serve, a);
  serve->add_option("--host", o.http.host, "Address to listen on; 0.0.0.0: all of this machine")
      ->capture_default_str();
  serve->add_option("--port", o.http.port, "Port; 0: any that is free")->capture_default_str();
  serve->add_option("--ctx", a.engine.context, "Tokens of prompt and answer [as compiled]")
      ->check(CLI::Range(1u, kMost));
  serve->add_option("--slots", a.engine.slots, "Answers at once [as compiled]")->check(CLI::Range(1u, kMost));
  serve->add_option("--queue", o.queue, "Requests that may wait; more are refused")->capture_default_str();
  serve
      ->add_option("--steps-at-once", o.steps_at_once,
                   "Tokens of a lone answer between two looks for new requests")
      ->check(CLI::Range(1u, 64u))
      ->capture_default_str();
  serve->add_option("--drain-seconds", o.drain_seconds, "Time for what runs when the server is told to stop")
      ->capture_default_str();
  serve->add_option("--api-key", o.api_key,
                    "Key that requests must have [none]; better given as PLOW_API_KEY");
  serve->add_option("--served-name", o.served_names,
                    "The model's name in requests, once for each --assets [as compiled]");
  serve
      ->add_option(
          "--memory", o.memory,
          "Memory for all models that are loaded at once, as 8GiB; others are loaded in place of those "
          "used longest ago [nine tenths of what is free]")
      ->transform(CLI::AsSizeValue(false));
  serve->add_option("--control", o.control,
                    "Make a socket here that takes status, load and unload (plowrt ps, load, unload) [none]");
  serve->add_flag_callback(
      "--no-prefix-sharing", [&o] { o.share_prefixes = false; },
      "Compute every prompt anew, also when its beginning is in the cache");
  serve->add_flag("--log-json", o.log_json, "Log a JSON object a line");
  serve->footer(
      "Examples:\n  plowrt serve --assets smollm2.plow\n  plowrt serve --assets smollm2.plow --port 9000 "
      "--ctx 4096\n"
      "  plowrt serve --assets smollm2.plow --assets qwen.plow --memory 8GiB --control "
      "/run/user/1000/plow.sock");

  commands.ps = app.add_subcommand("ps", "What a server does");
  commands.ps->add_option("--host", a.ps.host, "The server's address")->capture_default_str();
  commands.ps->add_option("--port", a.ps.port, "The server's port")->capture_default_str();
  commands.ps->add_option("--api-key", a.ps.api_key, "The server's key; better given as PLOW_API_KEY");
  commands.ps->add_option("--control", a.ps.control, "Ask the server's control socket instead");
  commands.ps->add_flag("--json", a.ps.json, "Print one JSON object");
  commands.ps->footer("Example:\n  plowrt ps --port 9000");
  commands.load = app.add_subcommand("load", "Bring a server's model into memory");
  commands.unload =
      app.add_subcommand("unload", "Take a server's model out of memory when its answers have ended");
  for (CLI::App* command : {commands.load, commands.unload}) {
    command->add_option("--model", a.ps.model, "The model, as plowrt ps lists it")->required();
    command->add_option("--control", a.ps.control, "The server's control socket")->required();
    command->footer(fmt::format("Example:\n  plowrt {} --model qwen --control /run/user/1000/plow.sock",
                                command->get_name()));
  }
}

void add_bench_options(CLI::App* command, Arguments& a) {
  add_engine_options(command, a);
  command->add_option("--ctx", a.bench.context, "Tokens of the prompt")
      ->check(CLI::Range(1u, kMost))
      ->capture_default_str();
  command->add_option("--repeat", a.bench.repeat, "Repeats, of which the median counts")
      ->check(CLI::Range(2u, 1000u))
      ->capture_default_str();
  command->add_flag("--json", a.json, "Print one JSON object");
}

void add_bench_startup(CLI::App& bench, Arguments& a, Commands& commands) {
  StartupBench& o = a.startup;
  commands.startup = bench.add_subcommand(
      "startup", "How long a server takes to its first answer, with the bundle in memory and on the disk");
  add_assets(commands.startup, a)->required();
  commands.startup->add_option("--runs", o.runs, "Starts of each kind, of which the median counts")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  commands.startup->add_option("--requests", o.requests, "Requests to each, one after the other")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  commands.startup->add_flag("--warm-only", o.warm_only, "Leave the bundle in memory");
  commands.startup->add_flag("--json", o.json, "Print one JSON object");
  commands.startup->footer(
      "The server is plowrt serve on this machine, with what PLOW_ variables say.\n\n"
      "Example:\n  plowrt bench startup --assets smollm2.plow --runs 10");
}

void add_bench(CLI::App& app, Arguments& a, Commands& commands) {
  commands.bench =
      app.add_subcommand("bench", "Measure speed beside the memory's read bandwidth, in the same run");
  commands.bench->require_subcommand(1);
  commands.decode =
      commands.bench->add_subcommand("decode", "Tokens a second of sequences that decode side by side");
  add_bench_options(commands.decode, a);
  commands.decode->add_option("--rows", a.bench.rows, "Sequences")
      ->check(CLI::Range(1u, 65535u))
      ->capture_default_str();
  commands.decode->add_option("--steps", a.bench.steps, "Steps of a repeat")
      ->check(CLI::Range(1u, kMost))
      ->capture_default_str();
  commands.decode->add_flag("--random-weights", a.engine.random_weights,
                            "Make weights on the GPU instead of reading the bundle's");
  commands.prefill = commands.bench->add_subcommand("prefill", "Tokens a second of a prompt");
  add_bench_options(commands.prefill, a);
  ServeLoad& l = a.load;
  CLI::App* serve = commands.bench_serve =
      commands.bench->add_subcommand("serve", "How a server that runs answers many clients");
  serve->add_option("--host", l.host, "The server's address")->capture_default_str();
  serve->add_option("--port", l.port, "The server's port")->capture_default_str();
  serve->add_option("--api-key", l.api_key, "The server's key; better given as PLOW_API_KEY");
  serve->add_option("--model", l.model, "The model to ask [the server's first]");
  serve->add_option("--requests", l.requests, "Requests in all")
      ->check(CLI::Range(1u, 1000000u))
      ->capture_default_str();
  serve->add_option("--concurrency", l.concurrency, "Clients, each asking again when it was answered")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  serve->add_option("--rate", l.rate, "Requests a second instead, at random times, whatever the server does")
      ->check(CLI::Range(0.001, 1e6));
  serve->add_option("--prompt-words", l.prompt_words, "Words of a prompt")
      ->check(CLI::Range(1u, 1000000u))
      ->capture_default_str();
  serve->add_option("--max-tokens", l.max_tokens, "Tokens of an answer")
      ->check(CLI::Range(1u, kMost))
      ->capture_default_str();
  serve->add_option("--seed", l.seed, "Of the prompts and the times")->capture_default_str();
  serve->add_flag("--json", l.json, "Print one JSON object");
  serve->footer(
      "Examples:\n  plowrt bench serve --requests 200 --concurrency 8\n  plowrt bench serve --rate 2.5 "
      "--json");
  add_bench_startup(*commands.bench, a, commands);
  commands.bench->footer(
      "Examples:\n  plowrt bench decode --assets smollm2.plow --ctx 512 --rows 4\n  plowrt bench prefill "
      "--assets smollm2.plow --ctx 1024 --json");
}

void add_inspect_commands(CLI::App& app, Arguments& a, Commands& commands) {
  commands.plan = app.add_subcommand("plan", "The exact device memory of a bundle");
  add_assets(commands.plan, a)->required();
  commands.plan->add_option("--slots", a.slots, "Sequences at once [as compiled]")
      ->check(CLI::Range(1u, kMost));
  commands.plan->add_option("--ctx", a.context, "Tokens of a sequence [as compiled]")
      ->check(CLI::Range(1u, kMost));
  commands.plan->footer("Example:\n  plowrt plan --assets smollm2.plow --slots 4 --ctx 1024");
  commands.doctor =
      app.add_subcommand("doctor", "What this machine has, and whether a bundle would run here");
  add_assets(commands.doctor, a);
  commands.doctor->footer("Examples:\n  plowrt doctor\n  plowrt doctor --assets smollm2.plow");
  commands.disasm = app.add_subcommand("disasm", "A bundle's packets as text");
  add_assets(commands.disasm, a)->required();
  commands.disasm->add_option("--program", a.program, "Only this program");
  commands.disasm->add_option("--worker", a.worker, "Only this worker's list");
  commands.disasm->footer("Example:\n  plowrt disasm --assets smollm2.plow --program 0 --worker 1");
}

Status run_model_command(const Commands& commands, Arguments& a) {
  PLOW_TRY(a.engine.isa, parse_isa_level(a.isa));
  if (commands.bench->parsed()) {
    a.bench.bundle = a.assets;
    a.bench.engine = a.engine;
    a.bench.engine.slots = commands.decode->parsed() ? a.bench.rows : 1;
    a.bench.json = a.json;
    return commands.decode->parsed() ? bench_decode(a.bench) : bench_prefill(a.bench);
  }
  if (commands.serve->parsed()) {
    a.serve.engine = a.engine;
    return serve_command(a.serve);
  }
  a.engine.slots = 1;  // one sequence; a smaller cache
  if (commands.chat->parsed()) {
    return chat_command({a.assets, a.engine, a.system, a.max_tokens == 0 ? 1024 : a.max_tokens, a.sampling});
  }
  a.run.bundle = a.assets;
  a.run.engine = a.engine;
  a.run.system = a.system;
  if (a.max_tokens != 0) a.run.max_tokens = a.max_tokens;
  a.run.sampling = a.sampling;
  a.run.json = a.json;
  return run_command(a.run);
}

Result<int> dispatch(const CLI::App& app, const Commands& commands, Arguments& a) {
  if (commands.bench_serve->parsed()) {
    PLOW_TRY_STATUS(bench_serve(a.load));
    return 0;
  }
  if (commands.startup->parsed()) {
    a.startup.bundle = a.assets;
    PLOW_TRY_STATUS(bench_startup(a.startup));
    return 0;
  }
  if (commands.completion->parsed()) {
    PLOW_TRY(const std::string script, completion_script(app, a.shell));
    fmt::print("{}", script);
    return 0;
  }
  if (commands.chat->parsed() || commands.run->parsed() || commands.serve->parsed() ||
      commands.bench->parsed()) {
    PLOW_TRY_STATUS(run_model_command(commands, a));
  } else if (commands.ps->parsed()) {
    PLOW_TRY_STATUS(ps_command(a.ps));
  } else if (commands.load->parsed()) {
    PLOW_TRY_STATUS(residency_command(a.ps, "load"));
  } else if (commands.unload->parsed()) {
    PLOW_TRY_STATUS(residency_command(a.ps, "unload"));
  } else if (commands.plan->parsed()) {
    PLOW_TRY_STATUS(plan_command(a.assets, a.slots, a.context));
  } else if (commands.doctor->parsed()) {
    PLOW_TRY_STATUS(doctor_command(a.assets));
  } else if (commands.disasm->parsed()) {
    PLOW_TRY_STATUS(disasm_command(a.assets, a.program, a.worker));
  }
  return 0;
}

int run_plowrt(int argc, char** argv) {
  Arguments arguments;
  Commands commands{};
  CLI::App app("Runs a bundle that plowc compiled.", "plowrt");
  app.set_version_flag("--version", fmt::format("plowrt {} (bundle format {})", PLOW_VERSION, kAbiVersion));
  app.require_subcommand(1);
  app.footer(
      "Every option can be given as an environment variable, PLOW_ASSETS for --assets, or in a TOML file "
      "that\n"
      "--config names; flags win over variables, and those over the file.\n"
      "Exit codes: 0, 2 usage, 3 input, 4 does not fit, 5 device, 6 verification.\n\n"
      "Examples:\n"
      "  plowrt chat --assets smollm2.plow\n"
      "  plowrt run --assets smollm2.plow --prompt 'What is a prime number?'\n"
      "  plowrt serve --assets smollm2.plow\n"
      "  plowrt bench decode --assets smollm2.plow");
  add_chat(app, arguments, commands);
  add_run(app, arguments, commands);
  add_serve(app, arguments, commands);
  add_bench(app, arguments, commands);
  add_inspect_commands(app, arguments, commands);
  commands.completion =
      app.add_subcommand("completion", "A script that completes commands and options in a shell");
  commands.completion->add_option("shell", arguments.shell, "bash, zsh or fish")->required();
  commands.completion->footer("Example:\n  source <(plowrt completion bash)");
  add_config_option(app);
  finish_options(app);
  return run_command_line(app, argc, argv, [&] { return dispatch(app, commands, arguments); });
}

}  // namespace

}  // namespace plow

int main(int argc, char** argv) { return plow::run_plowrt(argc, argv); }
