// perdura completion: prints scripts with which a shell completes perdura's commands and options,
// generated from the definitions of the commands.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/program/build_info.h"
#include "program/commands.h"

namespace perdura::program {
namespace {

// The possible values of an argument.
struct Values {
  std::vector<std::string> words{};
  // If there are no words: the arguments of `perdura list` that print the values.
  std::vector<std::string> names_of{};
  bool taken = false;  // there is a value at all; otherwise it is a flag
};

// The argument of `perdura list` whose values depend on the kind before it.
constexpr std::string_view kNameOfKind = "name";

Values values_of(const harness::Option& option, std::string_view name) {
  // For arguments whose values are names: the kind of those names in `perdura list`.
  static const std::map<std::string_view, std::vector<std::string>> names{
      {"experiment", {"experiments"}},
      {"--profile", {"profiles"}},
      {"--site", {"sites"}},
      {"target", {"methods", "systems"}},
  };
  Values values{.words = option.words(), .taken = option.takes_value()};
  if (const auto found = names.find(name); found != names.end()) values.names_of = found->second;
  if (name == "--platform") values.words = {"sim", "shm", "verbs"};
  return values;
}

std::string bash_words(const Values& values) {
  if (values.names_of.empty()) return fmt::format("words='{}'", fmt::join(values.words, " "));
  std::string commands;
  for (const std::string& what : values.names_of) {
    commands += fmt::format("{}\"${{COMP_WORDS[0]}}\" list {} 2>/dev/null",
                            commands.empty() ? "" : "; ", what);
  }
  return fmt::format("words=$({})", commands);
}

// The cases of a shell function for each command: the values of an option, and the completions of a
// partial word.
struct BashCases {
  std::string after_options;
  std::string begun;
  std::string groups;  // the commands that have subcommands, as " fs mcas"
};

// Adds a command's cases, after those of its subcommands, whose paths are longer.
void add_bash(const harness::Command& command, const std::string& path, BashCases& cases) {
  std::vector<std::string> own;
  for (const auto& each : command.subcommands()) {
    own.push_back(each->name());
    add_bash(*each, path + " " + each->name(), cases);
  }
  std::vector<std::string> options;
  std::string positional = fmt::format("words='{}'", fmt::join(own, " "));
  Values before;  // those of the argument before
  for (const harness::Option& option : command.options()) {
    for (const std::string& each : option.long_names()) {
      options.push_back(each);
      const Values values = values_of(option, each);
      if (!values.taken) continue;
      cases.after_options += fmt::format("    '{} {}') {} ;;\n", path, each, bash_words(values));
    }
    const std::string argument = option.positional_name();
    if (argument.empty()) continue;
    Values values = values_of(option, argument);
    if (argument == kNameOfKind) {
      for (const std::string& kind : before.words) {
        cases.after_options +=
            fmt::format("    '{} {}') {} ;;\n", path, kind, bash_words({.names_of = {kind}}));
      }
      continue;
    }
    positional = bash_words(values);
    before = std::move(values);
  }
  cases.begun += fmt::format("        '{} -'*) words='{}' ;;\n        '{} '*) {} ;;\n", path,
                             fmt::join(options, " "), path, positional);
  if (!own.empty()) cases.groups += " " + path;
}

// Where no words are given, `-o default` makes bash complete file names.
std::string bash(const harness::Command& program) {
  BashCases cases;
  std::vector<std::string> commands;
  for (const auto& command : program.subcommands()) {
    commands.push_back(command->name());
    add_bash(*command, command->name(), cases);
  }
  return fmt::format(
      "# Completion of perdura {} in bash; made by 'perdura completion bash'.\n"
      "_perdura() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=\n"
      "  local command=${{COMP_WORDS[1]}}\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -gt 2 ]; then\n"
      "    case '{} ' in *\" $command \"*) command=\"$command ${{COMP_WORDS[2]}}\" ;; esac\n"
      "  fi\n"
      "  case \"$command $previous\" in\n{}"
      "    *)\n"
      "      case \"$command $current\" in\n{}"
      "      esac\n"
      "      ;;\n"
      "  esac\n"
      "  if [ \"$COMP_CWORD\" -le 1 ]; then words='{} --help --version'; fi\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "}}\n"
      "complete -o default -F _perdura perdura\n",
      harness::build_info().version, cases.groups, cases.after_options, cases.begun,
      fmt::join(commands, " "));
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
    for (const std::string& what : values.names_of) {
      commands += fmt::format("{}perdura list {} 2>/dev/null", commands.empty() ? "" : "; ", what);
    }
    return fmt::format(" -x -a '({})'", commands);
  }
  if (!values.words.empty()) return fmt::format(" -x -a '{}'", fmt::join(values.words, " "));
  return values.taken ? " -r" : "";
}

// Adds the completions after a command, and those of its subcommands. `when` is fish's condition
// that the preceding commands were given.
void add_fish(const harness::Command& command, const std::string& when, std::string& text) {
  for (const auto& each : command.subcommands()) {
    text += fmt::format("complete -c perdura -n '{}' -f -a {} -d {}\n", when, each->name(),
                        fish_quoted(each->what()));
    add_fish(*each, fmt::format("{}; and __fish_seen_subcommand_from {}", when, each->name()),
             text);
  }
  for (const harness::Option& option : command.options()) {
    for (const std::string& each : option.long_names()) {
      text += fmt::format("complete -c perdura -n '{}' -l {}{} -d {}\n", when, each.substr(2),
                          fish_values(values_of(option, each)), fish_quoted(option.what()));
    }
    const std::string positional = option.positional_name();
    const Values values = values_of(option, positional);
    if (positional.empty() || (values.names_of.empty() && values.words.empty())) continue;
    text += fmt::format("complete -c perdura -n '{}'{}\n", when, fish_values(values));
  }
}

std::string fish(const harness::Command& program) {
  std::string text =
      fmt::format("# Completion of perdura {} in fish; made by 'perdura completion fish'.\n",
                  harness::build_info().version);
  for (const auto& command : program.subcommands()) {
    const std::string& name = command->name();
    text += fmt::format("complete -c perdura -n __fish_use_subcommand -f -a {} -d {}\n", name,
                        fish_quoted(command->what()));
    add_fish(*command, "__fish_seen_subcommand_from " + name, text);
  }
  return text;
}

}  // namespace

void add_completion(harness::Command& program, CommandContext& context) {
  const auto shell = std::make_shared<std::string>();
  harness::Command& command = program.subcommand(
      "completion",
      "Prints what a shell needs to complete this command line: source <(perdura completion bash)");
  command.option("shell", *shell, "Which shell").required().one_of({"bash", "fish"});
  command.does([shell, &program, &context] {
    if (context.ranks.is_root()) fmt::print("{}", *shell == "bash" ? bash(program) : fish(program));
    return harness::ExitCode::done;
  });
}

}  // namespace perdura::program
