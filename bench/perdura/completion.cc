// perdura completion: scripts by which a shell completes perdura's commands and options. They are
// generated from the definitions of the commands.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "bench/perdura/commands.h"
#include "harness/program/build_info.h"

namespace perdura::harness {
namespace {

// The possible values of an argument.
struct Values {
  std::vector<std::string> words{};
  // If there are no words: the argument of `perdura list` that lists the values.
  std::string names_of{};
  bool taken = false;  // whether there is a value at all; otherwise it is a flag
};

// For arguments whose values are names: what `perdura list` calls those names.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kNames{{
    {"experiment", "experiments"},
    {"--profile", "profiles"},
    {"--site", "sites"},
    {"target", "methods systems"},
}};

// CLI11 describes a choice as "TEXT:{dmp,mhp,wsp}".
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto first = type.find('{');
  const auto last = type.rfind('}');
  if (first == std::string::npos || last == std::string::npos) return {};
  return CLI::detail::split(type.substr(first + 1, last - first - 1), ',');
}

Values values_of(const CLI::Option& option, std::string_view name) {
  Values values{.taken = option.get_items_expected_max() > 0};
  values.words = choices_of(option);
  for (const auto& [argument, what] : kNames) {
    if (argument == name) values.names_of = what;
  }
  if (name == "--platform") values.words = {"sim", "shm", "verbs"};
  return values;
}

// All long names of an option, with dashes: "--out".
std::vector<std::string> long_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::string positional_name(const CLI::Option& option) { return option.get_name(true, false); }

std::string bash_words(const Values& values) {
  if (values.names_of.empty()) return fmt::format("words='{}'", fmt::join(values.words, " "));
  std::string commands;
  for (const std::string& what : CLI::detail::split(values.names_of, ' ')) {
    commands += fmt::format("{}\"${{COMP_WORDS[0]}}\" list {} 2>/dev/null",
                            commands.empty() ? "" : "; ", what);
  }
  return fmt::format("words=$({})", commands);
}

// Where no words are given, `-o default` makes bash complete file names.
std::string bash(const CLI::App& app) {
  std::string text = fmt::format(
      "# Completion of perdura {} in bash; made by 'perdura completion bash'.\n"
      "_perdura() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=\n"
      "  local command=${{COMP_WORDS[1]}}\n"
      "  COMPREPLY=()\n"
      "  case \"$command $previous\" in\n",
      build_info().version);
  std::string by_command;
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string& name = command->get_name();
    commands.push_back(name);
    std::vector<std::string> options;
    std::string positional = "words=''";
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& each : long_names(*option)) {
        options.push_back(each);
        const Values values = values_of(*option, each);
        if (!values.taken) continue;
        text += fmt::format("    '{} {}') {} ;;\n", name, each, bash_words(values));
      }
      if (option->get_positional()) {
        positional = bash_words(values_of(*option, positional_name(*option)));
      }
    }
    by_command += fmt::format("        '{} -'*) words='{}' ;;\n        '{} '*) {} ;;\n", name,
                              fmt::join(options, " "), name, positional);
  }
  text += fmt::format(
      "    *)\n"
      "      case \"$command $current\" in\n{}"
      "      esac\n"
      "      ;;\n"
      "  esac\n"
      "  if [ \"$COMP_CWORD\" -le 1 ]; then words='{} --help --version'; fi\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "}}\n"
      "complete -o default -F _perdura perdura\n",
      by_command, fmt::join(commands, " "));
  return text;
}

std::string fish_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char character : text) {
    if (character == '\'' || character == '\\') quoted += '\\';
    quoted += character;
  }
  return quoted + "'";
}

std::string fish_values(const Values& values) {
  if (!values.names_of.empty()) {
    std::string commands;
    for (const std::string& what : CLI::detail::split(values.names_of, ' ')) {
      commands += fmt::format("{}perdura list {} 2>/dev/null", commands.empty() ? "" : "; ", what);
    }
    return fmt::format(" -x -a '({})'", commands);
  }
  if (!values.words.empty()) return fmt::format(" -x -a '{}'", fmt::join(values.words, " "));
  return values.taken ? " -r" : "";
}

std::string fish(const CLI::App& app) {
  std::string text =
      fmt::format("# Completion of perdura {} in fish; made by 'perdura completion fish'.\n",
                  build_info().version);
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string& name = command->get_name();
    text += fmt::format("complete -c perdura -n __fish_use_subcommand -f -a {} -d {}\n", name,
                        fish_quoted(command->get_description()));
    const std::string when = fmt::format("-n '__fish_seen_subcommand_from {}'", name);
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& each : option->get_lnames()) {
        text += fmt::format("complete -c perdura {} -l {}{} -d {}\n", when, each,
                            fish_values(values_of(*option, "--" + each)),
                            fish_quoted(option->get_description()));
      }
      const Values values = values_of(*option, positional_name(*option));
      if (!option->get_positional() || (values.names_of.empty() && values.words.empty())) continue;
      text += fmt::format("complete -c perdura {}{}\n", when, fish_values(values));
    }
  }
  return text;
}

}  // namespace

void add_completion(CLI::App& app, CommandContext& context, Action& action) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "completion",
      "Prints what a shell needs to complete this command line: source <(perdura completion bash)");
  command->add_option("shell", *shell, "Which shell")
      ->required()
      ->check(CLI::IsMember({"bash", "fish"}));
  command->callback([shell, &app, &context, &action] {
    action = [shell, &app, &context] {
      if (context.ranks.is_root()) fmt::print("{}", *shell == "bash" ? bash(app) : fish(app));
      return ExitCode::done;
    };
  });
}

}  // namespace perdura::harness
