// The arguments of `perdura crash`, and its four explorations, each of which uses some of them. One
// explores the orders of a method's steps. The other three explore a system: its histories, its
// sequences of operations, or its schedules.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "explore/history_loss.h"
#include "explore/plan.h"
#include "explore/schedules.h"
#include "program/commands.h"
#include "program/configuration_options.h"

namespace perdura::program {

struct CrashArguments {
  std::string target;
  ConfigurationOptions configuration;
  std::optional<std::string> images;  // at a crash point: a number, or "all"
  std::uint64_t seed = 1;
  bool steps = false;
  std::vector<std::string> parameters;  // NAME=VALUE, for a system
  std::string persistence = "paper";    // how a system's puts persist: "paper" or "correct"
  std::optional<std::string> points;
  std::optional<std::string> schedule;  // history of a system; absent: all
  std::optional<std::string> fails;
  std::optional<std::string> profile;  // for a system; absent: erda-connectx3
  std::uint64_t threads = 0;           // 0: one per hardware thread of the host
  std::optional<std::string> strategy;
  std::optional<std::string> histories;
  std::optional<std::string> expected;  // a guarantee level; absent: durable
  // Where findings go; absent: out/crash, if it can be written.
  std::optional<std::string> folder;
  bool as_json = false;
  // The file of a finding; then only `diagram` may be given, too.
  std::optional<std::string> replay;
  std::optional<std::string> diagram;  // file for a space-time diagram of a loss, as SVG
};

// The crash points that --points names: FIRST, FIRST-LAST or FIRST-, each of which /STRIDE may
// follow. /STRIDE alone names one in so many of all crash points.
struct CrashPoints {
  std::uint64_t first = 0;
  std::uint64_t last = ~std::uint64_t{0};
  std::uint64_t stride = 1;

  bool are_all() const { return first == 0 && last == ~std::uint64_t{0} && stride == 1; }
};

// The failures that --fails names: their kind, how many servers fail at once, and how often they
// fail, which is twice for "power,power" and otherwise once.
struct Fails {
  explore::Failures what{};
  std::uint32_t times = 1;
};

// The strategy that --strategy names.
struct StrategyArgument {
  std::optional<services::SequenceKind> sequences{};  // nothing: `kind` is the strategy instead
  explore::StrategyKind kind{};
  std::uint32_t number = 0;  // delays of `bounded`, depth of `pct`
  bool late_placements = false;
};

// The two numbers of --histories: how many histories, and how many schedules of each.
struct HistoriesArgument {
  std::uint64_t histories = 20;
  std::uint64_t schedules = 0;  // 0: the strategy's default
};

// The problem with the text of such an argument, or "".
std::string problem_with_points(const std::string& text);
std::string problem_with_fails(const std::string& text);
std::string problem_with_strategy(const std::string& text);
std::string problem_with_histories(const std::string& text);
// Each of these functions returns the value of its argument, or the default if it was not given.
// The argument's text must have no problem.
CrashPoints points_of(const CrashArguments& arguments);
Fails fails_of(const CrashArguments& arguments);
// The same, for explorations with one failure. Throws UsageError if it cannot be tried as the
// arguments say.
explore::Failures one_failure_of(const CrashArguments& arguments);
std::optional<StrategyArgument> strategy_of(const CrashArguments& arguments);
std::optional<StrategyArgument> strategy_of(const std::string& text);
// The strategy of sequences of a kind, as an argument names it.
std::string text_of(const services::SequenceKind& kind);
HistoriesArgument histories_of(const CrashArguments& arguments);
// The limit of images at a crash point: `usual` if none is given, 0 for all.
std::uint64_t images_of(const CrashArguments& arguments, std::uint64_t usual);

// The explorations. All throw UsageError where arguments do not fit together. Those of a system
// return `done` if what was expected is kept on all persistence models.
harness::ExitCode crash_method(const CrashArguments& arguments, const CommandContext& context);
harness::ExitCode crash_system(const CrashArguments& arguments, const CommandContext& context);
harness::ExitCode crash_schedules(const CrashArguments& arguments, const CommandContext& context);
harness::ExitCode crash_sequences(const CrashArguments& arguments, const CommandContext& context);
// Repeats the loss and returns what the repetition shows, beginning with an empty line. Writes the
// diagram if the arguments ask for one.
std::string explanation_of(const CrashArguments& arguments, const explore::HistoryLoss& loss,
                           const sim::Profile& profile);
// Repeats a finding (finding_file.h). Returns `failed` if the loss occurs again.
harness::ExitCode replay_finding(const CrashArguments& arguments, const CommandContext& context);

// Throws UsageError if a diagram was asked for and cannot be written where it is to go.
void check_diagram(const CrashArguments& arguments);
// Throws UsageError if a folder for findings was given that cannot be written.
void check_folder(const CrashArguments& arguments);
// Writes a finding by `write(folder)`, which returns its file. Returns nothing, and sets `problem`, if
// no folder was given and the usual one cannot be written: the finding itself is worth more.
std::optional<std::filesystem::path> write_found(
    const CrashArguments& arguments,
    const std::function<std::filesystem::path(const std::filesystem::path&)>& write,
    std::string& problem);
// The same, as lines that follow a loss.
std::string text_of_found(
    const CrashArguments& arguments,
    const std::function<std::filesystem::path(const std::filesystem::path&)>& write);
// The name of the profile on which a system runs.
std::string profile_name(const CrashArguments& arguments);
// These functions return what the command's arguments select: the profile on which a system runs,
// the system's parameters, and its persistence models. Each throws UsageError if it cannot.
sim::Profile crash_profile(const CrashArguments& arguments, const CommandContext& context);
GivenParameters given_parameters(const services::SystemInfo& system,
                                 const CrashArguments& arguments);
// The parameters that are written as NAME=VALUE; an error begins with `source`.
GivenParameters parameters_in(const services::SystemInfo& system,
                              const std::vector<std::string>& texts, std::string_view source);
std::vector<pmem::PersistenceModel> system_models(const ConfigurationOptions& options);

// The profile on which a system runs if none is given.
inline constexpr std::string_view kUsualCrashProfile = "erda-connectx3";

}  // namespace perdura::program
