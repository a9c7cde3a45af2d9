#include "console/config_file.h"

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <cstdlib>
#include <string_view>
#include <vector>

namespace plow {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* command_of(const CLI::App& app, std::string_view name) {
  for (const CLI::App* command : commands_of(app)) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

std::string config_path(std::span<char* const> arguments) {
  constexpr std::string_view kFlag = "--config";
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == kFlag && i + 1 < arguments.size()) return arguments[i + 1];
    if (argument.starts_with(kFlag) && argument.substr(kFlag.size()).starts_with('='))
      return std::string(argument.substr(kFlag.size() + 1));
  }
  const char* variable = std::getenv("PLOW_CONFIG");
  return variable == nullptr ? "" : variable;
}

const CLI::Option* option_of(const CLI::App& app, std::string_view key) {
  return app.get_option_no_throw("--" + std::string(key));
}

bool any_has(const CLI::App& app, std::string_view key) {
  if (option_of(app, key) != nullptr) return true;
  for (const CLI::App* command : commands_of(app)) {
    if (any_has(*command, key)) return true;
  }
  return false;
}

// As a flag would have it; empty for what an option cannot be.
std::string text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  std::string joined;
  if (const auto* array = node.as_array()) {
    for (const toml::node& element : *array) joined += (joined.empty() ? "" : ",") + text_of(element);
  }
  return joined;
}

struct Reader {
  const std::string& path;

  // Every key of the table is known, and of something that an option can be.
  Status check(const toml::table& table, const CLI::App& app) const {
    for (const auto& [key, node] : table) {
      const auto line = node.source().begin.line;
      if (const toml::table* inner = node.as_table()) {
        const CLI::App* command = command_of(app, key.str());
        if (command == nullptr)
          return usage_error(fmt::format("{}:{}: there is no command '{}'.", path, line, key.str()));
        PLOW_TRY_STATUS(check(*inner, *command));
      } else if (!any_has(app, key.str())) {
        return usage_error(
            fmt::format("{}:{}: there is no option '{}' here. Keys are the options' long names "
                        "without the dashes.",
                        path, line, key.str()));
      } else if (text_of(node).empty()) {
        return usage_error(
            fmt::format("{}:{}: {} is empty or of a kind that no option takes.", path, line, key.str()));
      }
    }
    return {};
  }

  // Of the command that is asked for; what is set first wins.
  void set(const toml::table& table, const CLI::App& app, std::span<char* const> rest,
           std::vector<const toml::table*> outer) const {
    outer.push_back(&table);
    for (size_t i = 0; i < rest.size(); ++i) {
      const CLI::App* command = command_of(app, rest[i]);
      if (command == nullptr) continue;
      static const toml::table kNothing;
      const toml::node* inner = table.get(command->get_name());
      const bool there = inner != nullptr && inner->is_table();
      return set(there ? *inner->as_table() : kNothing, *command, rest.subspan(i + 1), outer);
    }
    for (size_t i = outer.size(); i-- > 0;) {
      for (const auto& [key, node] : *outer[i]) {
        const CLI::Option* option = node.is_table() ? nullptr : option_of(app, key.str());
        if (option != nullptr) ::setenv(option->get_envname().c_str(), text_of(node).c_str(), 0);
      }
    }
  }
};

}  // namespace

void add_config_option(CLI::App& app) {
  const auto commands = app.get_subcommands([](CLI::App*) { return true; });
  for (CLI::App* command : commands) add_config_option(*command);
  if (commands.empty())
    app.add_option("--config", "A TOML file with options, below variables and flags")->type_name("FILE");
}

Status read_config(const CLI::App& app, std::span<char* const> arguments) {
  const std::string path = config_path(arguments);
  if (path.empty()) return {};
  const toml::parse_result parsed = toml::parse_file(path);
  if (!parsed) {
    return input_error(
        fmt::format("{}:{}: {}.", path, parsed.error().source().begin.line, parsed.error().description()));
  }
  const Reader reader{path};
  PLOW_TRY_STATUS(reader.check(parsed.table(), app));
  reader.set(parsed.table(), app, arguments.subspan(1), {});
  return {};
}

}  // namespace plow
