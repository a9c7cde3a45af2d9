#include "console/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "console/interrupt.h"
#include "console/terminal.h"

namespace plow {

namespace {

void print_error(const std::string& program, const std::string& message) {
  const Terminal terminal = Terminal::of(STDERR_FILENO);
  fmt::print(stderr, "{} {}\n", terminal.red(program + ":"), message);
}

// The subcommand that was being parsed, for "Run 'plowrt run --help'".
std::string deepest_command(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return app.get_name() + (parsed.empty() ? "" : " " + deepest_command(*parsed.front()));
}

std::string sentence(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
  if (!text.empty() && text.back() != '.') text += '.';
  return text;
}

}  // namespace

void read_environment(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) continue;
    std::string name = option->get_lnames().front();
    if (name == "help" || name == "version") continue;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c))); });
    option->envname("PLOW_" + name);
  }
  for (CLI::App* subcommand : app.get_subcommands([](CLI::App*) { return true; })) read_environment(*subcommand);
}

int run_command_line(CLI::App& app, int argc, char** argv, const std::function<Result<int>()>& run) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help and --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    print_error(app.get_name(), fmt::format("{} Run '{} --help' to see what it takes.", sentence(error.what()), deepest_command(app)));
    return static_cast<int>(ErrorClass::kUsage);
  }
  const Result<int> status = run();
  std::fflush(stdout);
  if (const int signal = interrupted(); signal != 0) {
    if (!status.ok()) print_error(app.get_name(), status.error().message);
    return 128 + signal;
  }
  if (status.ok()) return *status;
  print_error(app.get_name(), status.error().message);
  return static_cast<int>(status.error().error_class);
}

}  // namespace plow
