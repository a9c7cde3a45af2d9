#include "console/completion.h"

#include <fmt/format.h>

#include <iterator>

namespace plow {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string words_of(const CLI::App& app) {
  std::string words;
  for (const CLI::App* command : commands_of(app)) words += command->get_name() + " ";
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
  }
  if (!words.empty()) words.pop_back();
  return words;
}

// `paths` gets a case for each command that is entered, `words` one for each path.
void append_bash(const CLI::App& app, const std::string& path, std::string& paths, std::string& words) {
  fmt::format_to(std::back_inserter(words), "    '{}') words='{}' ;;\n", path, words_of(app));
  for (const CLI::App* command : commands_of(app)) {
    const std::string inner = path + " " + command->get_name();
    fmt::format_to(std::back_inserter(paths), "      '{}') path='{}' ;;\n", inner, inner);
    append_bash(*command, inner, paths, words);
  }
}

std::string bash_script(const CLI::App& app) {
  const std::string& name = app.get_name();
  std::string paths, words;
  append_bash(app, name, paths, words);
  return fmt::format(
      "_{0}() {{\n"
      "  local path='{0}' words='' word\n"
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
      "    case \"$path $word\" in\n"
      "{1}"
      "    esac\n"
      "  done\n"
      "  case \"$path\" in\n"
      "{2}"
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"${{COMP_WORDS[COMP_CWORD]}}\"))\n"
      "}}\n"
      "complete -o default -F _{0} {0}\n",
      name, paths, words);
}

// A text between single quotes of fish.
std::string fish_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

void append_fish(const CLI::App& app, const std::string& program, const std::string& condition,
                 std::string& out) {
  const std::string begin = fmt::format("complete -c {} -n {}", program, fish_quoted(condition));
  std::string names;
  for (const CLI::App* command : commands_of(app)) names += " " + command->get_name();
  const std::string here = names.empty() ? "" : condition + "; and not __fish_seen_subcommand_from" + names;
  for (const CLI::App* command : commands_of(app)) {
    fmt::format_to(std::back_inserter(out), "complete -c {} -f -n {} -a {} -d {}\n", program,
                   fish_quoted(here), command->get_name(), fish_quoted(command->get_description()));
    append_fish(*command, program, condition + "; and __fish_seen_subcommand_from " + command->get_name(),
                out);
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      fmt::format_to(std::back_inserter(out), "{} -l {}{} -d {}\n", begin, name,
                     option->get_items_expected_max() == 0 ? "" : " -r",
                     fish_quoted(option->get_description()));
    }
  }
}

}  // namespace

Result<std::string> completion_script(const CLI::App& app, std::string_view shell) {
  if (shell == "bash") return bash_script(app);
  if (shell == "zsh") return "autoload -U +X bashcompinit && bashcompinit\n" + bash_script(app);
  if (shell == "fish") {
    std::string out;
    append_fish(app, app.get_name(), "true", out);
    return out;
  }
  return usage_error(fmt::format("there is no completion for '{}'; there is for bash, zsh and fish.", shell));
}

}  // namespace plow
