#include "console/command_line.h"

#include "console/config_file.h"
#include "console/interrupt.h"
#include "console/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

namespace plow {

namespace {

void print_error(const std::string& program, const std::string& message) {
  const Terminal terminal = Terminal::of(STDERR_FILENO);
  fmt::print(stderr, "{} {}\n", terminal.red(program + ":"), message);
}

// The subcommand that was being parsed.
const CLI::App& deepest(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : deepest(*parsed.front());
}

std::string full_name(const CLI::App& app) {
  return (app.get_parent() == nullptr ? "" : full_name(*app.get_parent()) + " ") + app.get_name();
}

// The value that an option takes, as the help shows it: "N", "TEXT", "f32|bf16". CLI11's own form names the
// limits and the variable of every option, which buries the text.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string type = option->get_type_name();
    const size_t colon = type.find(':');
    if (colon != std::string::npos) {
      const bool choices = type[colon + 1] == '{';
      type = choices ? type.substr(colon + 2, type.size() - colon - 3) : type.substr(0, colon);
      std::replace(type.begin(), type.end(), ',', '|');
    }
    if (type == "UINT") type = "N";
    std::string text = type.empty() || option->get_items_expected_max() == 0 ? "" : " " + type;
    if (!option->get_default_str().empty()) text += " [" + option->get_default_str() + "]";
    if (option->get_required()) text += " (required)";
    return text;
  }
};

std::string sentence(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
  if (!text.empty() && text.back() != '.') text += '.';
  return text;
}

// Where a command is missing or mistyped: which there are.
std::string missing_command(const CLI::App& app, const std::vector<std::string>& rest) {
  std::string names;
  for (const CLI::App* subcommand : app.get_subcommands([](const CLI::App*) { return true; })) {
    names += (names.empty() ? "" : ", ") + subcommand->get_name();
  }
  if (!rest.empty() && !rest.front().starts_with('-'))
    return fmt::format("there is no command '{}'; there are {}.", rest.front(), names);
  return fmt::format("a command is missing after '{}': one of {}.", full_name(app), names);
}

// The error in a sentence. CLI11 reports what is not known only when nothing that is required lacks, but a
// mistyped name is the likelier mistake.
std::string describe(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = deepest(app);
  const std::vector<std::string> rest = app.remaining(true);
  if (command.get_require_subcommand_min() > 0) return missing_command(command, rest);
  if (!rest.empty())
    return fmt::format("the {} '{}' is not known.", rest.front().starts_with('-') ? "option" : "argument",
                       rest.front());
  const std::string text = error.what();
  if (error.get_name() == "ArgumentMismatch") return text.substr(0, text.find(':')) + " needs a value.";
  return sentence(text);
}

Error output_error(int error) {
  const std::string message = fmt::format("cannot write to standard output: {}", std::strerror(error));
  return error == ENOSPC ? does_not_fit(message) : input_error(message);
}

// What was printed may still be in a buffer, and the disk behind it full. {fmt} throws when a write fails.
Result<int> run_and_flush(const std::function<Result<int>()>& run) {
  try {
    Result<int> result = run();
    if (result.ok() && std::fflush(stdout) != 0) return output_error(errno);
    return result;
  } catch (const std::system_error& error) {
    return output_error(error.code().value());
  }
}

}  // namespace

void finish_options(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormatter>());
  for (CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) continue;
    std::string name = option->get_lnames().front();
    if (name == "help" || name == "version") continue;
    std::transform(name.begin(), name.end(), name.begin(), [](char c) {
      return c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    });
    option->envname("PLOW_" + name);
  }
  for (CLI::App* subcommand : app.get_subcommands([](CLI::App*) { return true; }))
    finish_options(*subcommand);
}

int run_command_line(CLI::App& app, int argc, char** argv, const std::function<Result<int>()>& run) {
  if (const Status config = read_config(app, std::span(argv, static_cast<size_t>(argc))); !config.ok()) {
    print_error(app.get_name(), config.error().message);
    return static_cast<int>(config.error().error_class);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help and --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    print_error(app.get_name(), fmt::format("{} Run '{} --help' to see what it takes.", describe(app, error),
                                            full_name(deepest(app))));
    return static_cast<int>(ErrorClass::kUsage);
  }
  const Result<int> status = run_and_flush(run);
  if (const int signal = interrupted(); signal != 0) {
    if (!status.ok()) print_error(app.get_name(), status.error().message);
    return 128 + signal;
  }
  if (status.ok()) return *status;
  print_error(app.get_name(), status.error().message);
  return static_cast<int>(status.error().error_class);
}

}  // namespace plow
