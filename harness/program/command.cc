#include "harness/program/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "harness/program/command_line.h"
#include "platform/base/suggestion.h"

namespace perdura::harness {
namespace {

// A name that ends right before the column of descriptions gets a line of its own, as longer names
// do: with a single blank between name and description neither readers nor the generator of man
// pages could tell them apart.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string text = CLI::Formatter::make_option(option, is_positional);
    const std::size_t column = get_column_width();
    if (text.size() > column && text.find('\n') > column && text[column - 1] == ' ' &&
        text[column - 2] != ' ') {
      text.replace(column - 1, 1, "\n" + std::string(column, ' '));
    }
    return text;
  }
};

// True if the whole text is a number from `low` to `high`; NaN is not.
template <class T>
bool is_number(const std::string& text, T low, T high) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end && value >= low && value <= high;
}

// The problem with a text that should be a whole number, or "".
// `otherwise` names what may be given in place of a number: "'all' or ".
std::string not_whole(const std::string& text, std::uint64_t low, std::uint64_t high,
                      std::string_view otherwise = "") {
  if (text.size() > 1 && text.front() == '0' && is_number(text, low, high)) {
    return fmt::format("must be written without zeros before it, not '{}'", text);
  }
  if (is_number(text, low, high)) return "";
  return fmt::format("must be {}a whole number from {} to {}, not '{}'", otherwise, low, high,
                     text);
}

// The name of the check of whole numbers that an option has until it is given narrower bounds.
constexpr const char* kAnyNumber = "any number";

// The commands that were chosen, each below the one before it.
std::vector<const CLI::App*> chosen_commands(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* last = &app; !last->get_subcommands().empty();) {
    last = last->get_subcommands().front();
    commands.push_back(last);
  }
  return commands;
}

// The parser takes "" for 0 or for no value, as the types of the options want it. A script whose
// variable is not set gives "", and would get what it did not ask for.
void forbid_empty(CLI::Option& option) {
  option.check(
      [&option](const std::string& text) -> std::string {
        if (!text.empty()) return "";
        return option.get_required() ? "must not be empty"
                                     : "must not be empty; leave it out instead";
      },
      "", "not empty");
}

// The parser itself takes -1 for the largest number, a number that is too large for the largest,
// and 010 for 8.
void check_whole(CLI::Option& option, std::uint64_t most) {
  const auto problem_of = [most](const std::string& text) { return not_whole(text, 0, most); };
  option.check(CLI::Validator(problem_of, "", kAnyNumber));
}

void check_bounds_only(CLI::Option& option) { option.get_validator(kAnyNumber)->active(false); }

std::vector<std::string> long_names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

// For an unknown option, a hint at the one that was probably meant.
std::string meant_option(const CLI::App& app) {
  std::vector<const CLI::App*> commands = chosen_commands(app);
  commands.insert(commands.begin(), &app);
  for (const CLI::App* command : commands) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_group().empty()) continue;
      for (std::string& name : long_names_of(*option)) names.push_back(std::move(name));
    }
    const std::vector<std::string_view> known(names.begin(), names.end());
    for (const std::string& argument : command->remaining()) {
      if (!argument.starts_with("--")) continue;
      const auto meant = nearest(argument.substr(0, argument.find('=')), known);
      if (!meant.empty()) return fmt::format("; did you mean {}?", meant);
    }
  }
  return "";
}

// The message about an unknown word in place of a subcommand; "" if there is none.
std::string unknown_subcommand(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  if (commands.empty()) return "";
  const CLI::App& command = *commands.front();
  std::vector<std::string> known;
  for (const CLI::App* each : command.get_subcommands({})) {
    if (!each->get_group().empty()) known.push_back(each->get_name());
  }
  const std::vector<std::string> rest = command.remaining();
  if (known.empty() || rest.empty() || rest.front().starts_with('-')) return "";
  return unknown_name(command.get_name() + " command", rest.front(), known);
}

// The message about wrong usage: what was not understood, in the order given, and where help is.
// An unknown option is told first: it may be the misspelled one that is missing.
std::string misuse(const CLI::App& app, const CLI::ParseError& error) {
  std::string what = error.what();
  const std::vector<std::string> rest = app.remaining(true);
  bool is_unknown = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError)) {
    if (const std::string unknown = unknown_subcommand(app); !unknown.empty()) return unknown;
    is_unknown = std::any_of(rest.begin(), rest.end(),
                             [](const std::string& word) { return word.starts_with('-'); });
  }
  if (is_unknown) {
    what = fmt::format("The following argument{} not expected: {}",
                       rest.size() == 1 ? " was" : "s were", fmt::join(rest, " "));
  }
  std::string command = app.get_name();
  for (const CLI::App* chosen : chosen_commands(app)) command += " " + chosen->get_name();
  return fmt::format("{}{} (see '{} --help')", what, meant_option(app), command);
}

}  // namespace

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& words, const std::string& meaning) {
  const CLI::IsMember member(words);
  const auto problem_of = [member, meaning](const std::string& text) {
    const std::string problem = member(text);
    return problem.empty() ? problem : fmt::format("{}; {}", problem, meaning);
  };
  option_->check(CLI::Validator(problem_of, member.get_description()));
  return *this;
}

Option& Option::whole_number(std::uint64_t low, std::uint64_t high) {
  const auto problem_of = [low, high](const std::string& text) {
    return not_whole(text, low, high);
  };
  check_bounds_only(*option_);
  option_->check(CLI::Validator(problem_of, fmt::format("{} to {}", low, high)));
  return *this;
}

Option& Option::whole_number_or(std::uint64_t low, std::uint64_t high, const std::string& word) {
  const auto problem_of = [low, high, word](const std::string& text) {
    if (text == word) return std::string();
    return not_whole(text, low, high, fmt::format("'{}' or ", word));
  };
  option_->check(CLI::Validator(problem_of, fmt::format("{} to {}, {}", low, high, word)));
  return *this;
}

Option& Option::number(double low, double high) {
  const auto problem_of = [low, high](const std::string& text) {
    if (is_number(text, low, high)) return std::string();
    return fmt::format("must be a number from {} to {}, not '{}'", low, high, text);
  };
  option_->check(CLI::Validator(problem_of, fmt::format("{} to {}", low, high)));
  return *this;
}

Option& Option::range(int low, int high) {
  option_->check(CLI::Range(low, high));
  return *this;
}

namespace {

// Replaces a size by its number of bytes, or returns the problem with it. A fraction such as
// "1.5GiB" is rounded down to bytes.
std::string to_bytes(std::string& text) {
  static const CLI::AsSizeValue kWhole(false);
  constexpr long double kBeyond = 0x1p63L;
  if (text.empty()) return "must not be empty";
  if (text.front() == '-') return text + " is negative";
  const std::size_t end = text.find_first_not_of("0123456789.");
  const std::string number = text.substr(0, end);
  if (number.empty()) return text + " is no size";
  std::string unit = end == std::string::npos ? "1" : "1" + text.substr(end);
  if (std::string problem = kWhole(unit); !problem.empty()) return problem;
  char* rest = nullptr;
  const long double bytes =
      std::strtold(number.c_str(), &rest) * static_cast<long double>(std::stoull(unit));
  if (*rest != '\0') return text + " is no size";
  if (bytes >= kBeyond) {
    return fmt::format("{} is larger than the largest size, {} bytes", text,
                       (std::uint64_t{1} << 63) - 1);
  }
  text = std::to_string(static_cast<std::uint64_t>(bytes));
  return "";
}

}  // namespace

Option& Option::size_with_unit() {
  option_->transform(CLI::Validator(to_bytes, "SIZE"));
  return *this;
}

Option& Option::may_be_empty() {
  option_->get_validator("not empty")->active(false);
  return *this;
}

Option& Option::check(const std::function<std::string(const std::string&)>& problem_of) {
  option_->check(problem_of);
  return *this;
}

Option& Option::one_value_at_a_time() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option& Option::hidden() {
  option_->group("");
  return *this;
}

std::vector<std::string> Option::long_names() const { return long_names_of(*option_); }

std::string Option::positional_name() const {
  return option_->get_positional() ? option_->get_name(true, false) : "";
}

std::string Option::what() const { return option_->get_description(); }

bool Option::takes_value() const { return option_->get_items_expected_max() > 0; }

bool Option::is_given() const { return !option_->empty(); }

// CLI11 describes a choice as "TEXT:{dmp,mhp,wsp}".
std::vector<std::string> Option::words() const {
  const std::string type = option_->get_type_name();
  const auto first = type.find('{');
  const auto last = type.rfind('}');
  if (first == std::string::npos || last == std::string::npos) return {};
  return CLI::detail::split(type.substr(first + 1, last - first - 1), ',');
}

Command::Command(std::shared_ptr<CLI::App> app, std::shared_ptr<Work> chosen)
    : app_(std::move(app)), chosen_(std::move(chosen)) {}

template <class T>
Option Command::option(const std::string& names, T& value, const std::string& what) {
  CLI::Option& added = *app_->add_option(names, value, what);
  forbid_empty(added);
  if constexpr (std::is_same_v<T, std::uint64_t> ||
                std::is_same_v<T, std::optional<std::uint64_t>>) {
    check_whole(added, ~std::uint64_t{0});
  }
  if constexpr (std::is_same_v<T, std::uint32_t> ||
                std::is_same_v<T, std::optional<std::uint32_t>>) {
    check_whole(added, ~std::uint32_t{0});
  }
  return Option(added);
}
template Option Command::option(const std::string&, std::string&, const std::string&);
template Option Command::option(const std::string&, std::uint64_t&, const std::string&);
template Option Command::option(const std::string&, std::uint32_t&, const std::string&);
template Option Command::option(const std::string&, int&, const std::string&);
template Option Command::option(const std::string&, double&, const std::string&);
template Option Command::option(const std::string&, std::optional<std::string>&,
                                const std::string&);
template Option Command::option(const std::string&, std::optional<std::uint64_t>&,
                                const std::string&);
template Option Command::option(const std::string&, std::optional<std::uint32_t>&,
                                const std::string&);
template Option Command::option(const std::string&, std::vector<std::string>&, const std::string&);

Option Command::flag(const std::string& names, bool& value, const std::string& what) {
  return Option(*app_->add_flag(names, value, what));
}

// CLI11 gives a negated flag a negative count, and counts both.
Option Command::flag(const std::string& names, std::optional<bool>& value,
                     const std::string& what) {
  const auto given = std::make_shared<const CLI::Option*>();
  const auto set = [&value, given](std::int64_t count) {
    const auto& all = (*given)->results();
    if (std::any_of(all.begin(), all.end(), [&](const auto& one) { return one != all.front(); })) {
      throw CLI::ExcludesError((*given)->get_name(), "--" + (*given)->get_fnames().front());
    }
    value = count > 0;
  };
  CLI::Option* const added = app_->add_flag_function(names, set, what);
  *given = added;
  return Option(*added);
}

Command& Command::subcommand(const std::string& name, const std::string& what) {
  const std::shared_ptr<CLI::App> app(app_, app_->add_subcommand(name, what));
  return *subcommands_.emplace_back(new Command(app, chosen_));
}

void Command::require_subcommand() { app_->require_subcommand(1); }

void Command::hidden() { app_->group(""); }

void Command::require_either(const Option& wanted, const Option& other) {
  either_.emplace_back(wanted, other);
}

void Command::does(Work work) {
  app_->callback([this, work = std::move(work)] {
    for (const auto& [wanted, other] : either_) {
      if (wanted.option_->empty() && other.option_->empty()) {
        throw CLI::RequiredError(wanted.option_->get_name());
      }
    }
    *chosen_ = work;
  });
}

const std::string& Command::name() const { return app_->get_name(); }

std::string Command::what() const { return app_->get_description(); }

std::vector<Option> Command::options() const {
  std::vector<Option> options;
  for (CLI::Option* const option : app_->get_options()) {
    if (!option->get_group().empty()) options.push_back(Option(*option));
  }
  return options;
}

std::vector<const Command*> Command::subcommands() const {
  std::vector<const Command*> shown;
  for (const auto& each : subcommands_) {
    if (!each->app_->get_group().empty()) shown.push_back(each.get());
  }
  return shown;
}

Program::Program(const std::string& what, const std::string& name)
    : Command(std::make_shared<CLI::App>(what, name), std::make_shared<Work>()) {
  app_->formatter(std::make_shared<HelpFormatter>());
}

void Program::version(const std::string& text) { app_->set_version_flag("--version", text); }

void Program::footer(const std::string& text) { app_->footer(text); }

ExitCode Program::run(int count, const char* const* arguments, bool visible) {
  try {
    app_->parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return complain(visible, ExitCode::usage, misuse(*app_, error));
    if (visible) app_->exit(error);  // prints what was asked for: help or the version
    return ExitCode::done;
  }
  return run_and_print(*chosen_);
}

}  // namespace perdura::harness
