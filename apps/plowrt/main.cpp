// plowrt: bundle -> answers. Only the command line is here.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <optional>
#include <string>

#include "abi/header.h"
#include "console/command_line.h"
#include "plowrt/doctor.h"
#include "plowrt/inspect_commands.h"

namespace plow {

namespace {

constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();

struct Arguments {
  std::string assets;
  std::optional<uint32_t> slots, context;   // plan
  std::optional<uint32_t> program, worker;  // disasm
};

struct Commands {
  CLI::App *plan, *doctor, *disasm;
};

CLI::Option* add_assets(CLI::App* command, Arguments& a) {
  return command->add_option("--assets", a.assets, "The bundle's directory");
}

void add_inspect_commands(CLI::App& app, Arguments& a, Commands& commands) {
  commands.plan = app.add_subcommand("plan", "The exact device memory of a bundle");
  add_assets(commands.plan, a)->required();
  commands.plan->add_option("--slots", a.slots, "Sequences at once [as compiled]")->check(CLI::Range(1u, kMost));
  commands.plan->add_option("--ctx", a.context, "Tokens of a sequence [as compiled]")->check(CLI::Range(1u, kMost));
  commands.plan->footer("Example:\n  plowrt plan --assets smollm2.plow --slots 4 --ctx 1024");
  commands.doctor = app.add_subcommand("doctor", "What this machine has, and whether a bundle would run here");
  add_assets(commands.doctor, a);
  commands.doctor->footer("Examples:\n  plowrt doctor\n  plowrt doctor --assets smollm2.plow");
  commands.disasm = app.add_subcommand("disasm", "A bundle's packets as text");
  add_assets(commands.disasm, a)->required();
  commands.disasm->add_option("--program", a.program, "Only this program");
  commands.disasm->add_option("--worker", a.worker, "Only this worker's list");
  commands.disasm->footer("Example:\n  plowrt disasm --assets smollm2.plow --program 0 --worker 1");
}

Result<int> dispatch(const Commands& commands, Arguments& a) {
  if (commands.plan->parsed()) {
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
  add_inspect_commands(app, arguments, commands);
  finish_options(app);
  return run_command_line(app, argc, argv, [&] { return dispatch(commands, arguments); });
}

}  // namespace

}  // namespace plow

int main(int argc, char** argv) { return plow::run_plowrt(argc, argv); }
