// The command line of a program: its commands, their options and arguments, and the function that
// each command runs.
//
// The programs parse with CLI11, a library of headers that takes the compiler seconds even where
// little of it is used. Only command.cc includes it; for all other sources this is the interface.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/program/exit_code.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace perdura::harness {

// A handle of an option, a flag or a positional argument of a command; copyable. The functions that
// restrict how an option is given, or its values, return the option, so that calls can be chained.
// Violations are wrong usage, and help shows the allowed values.
class Option {
 public:
  Option& required();
  Option& one_of(const std::vector<std::string>& words);
  // The same, for words that need an explanation, which follows the refusal of another word.
  Option& one_of(const std::vector<std::string>& words, const std::string& meaning);
  Option& whole_number(std::uint64_t low, std::uint64_t high);
  // The same, or `word`.
  Option& whole_number_or(std::uint64_t low, std::uint64_t high, const std::string& word);
  // Finite, with or without a fraction.
  Option& number(double low, double high);
  // A whole number, too; help says "INT in [LOW - HIGH]" in place of "LOW to HIGH".
  Option& range(int low, int high);
  // A size in bytes: 4096, 64MiB. The value is set to the number of bytes.
  Option& size_with_unit();
  // Allows "", which is otherwise refused: a script whose variable is not set gives it.
  Option& may_be_empty();
  // `problem_of` returns the problem with a text, or "".
  Option& check(const std::function<std::string(const std::string&)>& problem_of);
  // Takes one value each time it is given, so that positional arguments may follow.
  Option& one_value_at_a_time();
  Option& needs(const Option& other);
  Option& excludes(const Option& other);
  // Shown neither by help nor by completion.
  Option& hidden();

  // With dashes: "--out".
  std::vector<std::string> long_names() const;
  // Empty for an option that is given by its name.
  std::string positional_name() const;
  std::string what() const;
  bool takes_value() const;
  // True if the arguments that were parsed have it.
  bool is_given() const;
  // The allowed values, if set by one_of().
  std::vector<std::string> words() const;

 private:
  friend class Command;
  explicit Option(CLI::Option& option) : option_(&option) {}

  CLI::Option* option_;
};

class Command {
 public:
  using Work = std::function<ExitCode()>;

  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // `names` are those of an option ("-o,--out") or of a positional argument ("folder"). The value
  // is unchanged if the argument is absent. T is std::string, std::uint64_t, std::uint32_t, int or
  // double, std::optional of one of the first three, or std::vector<std::string>. Whole numbers are
  // decimal and must fit into T.
  template <class T>
  Option option(const std::string& names, T& value, const std::string& what = "");
  // "--json" sets the value to true, "--no-sync{false}" to false.
  Option flag(const std::string& names, bool& value, const std::string& what);
  // "--flush,!--no-flush"; the value stays empty if neither is given.
  Option flag(const std::string& names, std::optional<bool>& value, const std::string& what);

  Command& subcommand(const std::string& name, const std::string& what);
  void require_subcommand();
  // Shown neither by help of the program or command above, nor by completion, nor in error
  // messages.
  void hidden();
  // Giving neither option is wrong usage; the message asks for `wanted`.
  void require_either(const Option& wanted, const Option& other);
  // Sets the function to run if this command was chosen.
  void does(Work work);

  const std::string& name() const;
  std::string what() const;
  // Those that help shows, without hidden ones; used by completion.
  std::vector<const Command*> subcommands() const;
  std::vector<Option> options() const;

 protected:
  Command(std::shared_ptr<CLI::App> app, std::shared_ptr<Work> chosen);

  std::shared_ptr<CLI::App> app_;
  std::shared_ptr<Work> chosen_;  // shared by all commands of a program

 private:
  std::vector<std::unique_ptr<Command>> subcommands_;
  std::vector<std::pair<Option, Option>> either_;  // at least one of each pair is required
};

// The nameless command that contains all others.
class Program final : public Command {
 public:
  Program(const std::string& what, const std::string& name);

  // Adds --version, which prints this text.
  void version(const std::string& text);
  // Sets the text at the end of the program's help.
  void footer(const std::string& text);

  // Parses the arguments and runs the chosen command, or prints help, or prints one line that says
  // what is wrong with the arguments and where help is. Throws what the command throws, and
  // PlatformError if its output cannot be written; finish_output() deals with output that is still
  // buffered then. Prints help and mistakes only if `visible`: one process of a job is enough.
  ExitCode run(int count, const char* const* arguments, bool visible = true);
};

}  // namespace perdura::harness
