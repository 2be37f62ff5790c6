// perdura crash: explores what a failure may do to a method of remote persistence or to a system.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>

#include "methods/method.h"
#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "program/crash_arguments.h"
#include "systems/registry/registry.h"

namespace perdura::program {
namespace {

// The crash schedules of all services, without duplicate names.
std::vector<services::CrashSchedule> all_schedules() {
  std::vector<services::CrashSchedule> all;
  for (const services::Service* service : systems::all_services()) {
    for (const services::CrashSchedule& schedule : service->schedules()) {
      const bool known = std::any_of(
          all.begin(), all.end(), [&](const auto& other) { return other.name == schedule.name; });
      if (!known) all.push_back(schedule);
    }
  }
  return all;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const services::CrashSchedule& schedule : all_schedules()) names.emplace_back(schedule.name);
  return names;
}

// Text for the help, such as "; equal-writers: both clients ..., slow-writer: one writes ...".
std::string schedules() {
  std::string text;
  for (const services::CrashSchedule& schedule : all_schedules()) {
    text += fmt::format("{} {}: {}", text.empty() ? ";" : ",", schedule.name, schedule.what);
  }
  return text;
}

// The four explorations, and the repetition of a finding.
enum class Explores : std::uint8_t { method, histories, sequences, schedules, replay };

constexpr std::string_view text_of(Explores what) {
  switch (what) {
    case Explores::method:
      return "a method's order of steps";
    case Explores::histories:
      return "a system's histories";
    case Explores::sequences:
      return "sequences of operations (--strategy sequences:N or pairs)";
    case Explores::schedules:
      return "schedules of a system (--strategy)";
    case Explores::replay:
      return "a finding (--replay)";
  }
  return "";
}

// The explorations that have an option; options that are not listed are for all but --replay.
struct Use {
  std::string_view option;
  std::vector<Explores> by;
};
const std::vector<Use>& uses() {
  using enum Explores;
  static const std::vector<Use> all{
      {"--receive-buffers", {method}},
      {"--steps", {method}},
      {"--parameter", {histories, sequences, schedules}},
      {"--persistence", {histories, sequences, schedules}},
      {"--points", {histories, sequences, schedules}},
      {"--schedule", {histories}},
      {"--fails", {histories, sequences, schedules}},
      {"--profile", {histories, sequences, schedules}},
      {"--threads", {histories, sequences, schedules}},
      {"--strategy", {sequences, schedules}},
      {"--histories", {schedules}},
      {"--expect", {schedules}},
      {"--out", {histories, sequences, schedules}},
      {"--diagram", {histories, replay}},
      {"--json", {method, histories}},
      {"--replay", {replay}},
  };
  return all;
}

// An option that changes nothing would let its user take the answer for one about something else.
void check_uses(const harness::Command& command, Explores what) {
  for (const harness::Option& option : command.options()) {
    const std::vector<std::string> names = option.long_names();
    if (!option.is_given() || names.empty()) continue;
    const std::string& name = names.front();
    const auto use = std::find_if(uses().begin(), uses().end(),
                                  [&](const Use& one) { return one.option == name; });
    const bool fits = use == uses().end()
                          ? what != Explores::replay
                          : std::find(use->by.begin(), use->by.end(), what) != use->by.end();
    if (fits) continue;
    if (what == Explores::replay) {
      throw UsageError(
          fmt::format("crash: --replay excludes {}: the file says what to repeat", name));
    }
    std::vector<std::string_view> others;
    for (const Explores other : use->by) others.push_back(text_of(other));
    throw UsageError(fmt::format("crash: {} is for {}, not for {}", name,
                                 fmt::join(others, ", for "), text_of(what)));
  }
}

// An answer about a built-in method would be taken for one about the file, and the other way round.
void check_means_one(const std::string& target) {
  const auto& known = methods::methods();
  const bool is_method =
      std::any_of(known.begin(), known.end(),
                  [&](const methods::Method& method) { return method.name == target; });
  if (!is_method && !systems::find_system(target)) return;
  const PathKind kind = kind_of(target);
  if (kind != PathKind::file && kind != PathKind::other) return;
  throw UsageError(fmt::format(
      "crash: '{0}' is a built-in {1}, and a file here has this name, too; write ./{0} for the "
      "file, or rename it to explore the {1}",
      target, is_method ? "method" : "system"));
}

Explores explored_by(const CrashArguments& arguments) {
  if (arguments.replay) return Explores::replay;
  if (arguments.target.empty()) {
    throw UsageError("crash: name a method, a file with the steps of one, or a system");
  }
  check_means_one(arguments.target);
  if (!systems::find_system(arguments.target)) return Explores::method;
  const std::optional<StrategyArgument> strategy = strategy_of(arguments);
  if (!strategy) return Explores::histories;
  return strategy->sequences ? Explores::sequences : Explores::schedules;
}

harness::ExitCode crash(const harness::Command& command, const CrashArguments& arguments,
                        const CommandContext& context) {
  if (!context.ranks.is_root()) return harness::ExitCode::done;
  const Explores what = explored_by(arguments);
  check_uses(command, what);
  switch (what) {
    case Explores::method:
      return crash_method(arguments, context);
    case Explores::histories:
      return crash_system(arguments, context);
    case Explores::sequences:
      return crash_sequences(arguments, context);
    case Explores::schedules:
      return crash_schedules(arguments, context);
    case Explores::replay:
      break;
  }
  return replay_finding(arguments, context);
}

void add_what_is_tried(harness::Command& command, CrashArguments& arguments) {
  command
      .option("--images", arguments.images,
              "Tries so many images at every crash point, or all; of a system recovers from them, "
              "and each recovery stands for all images that look the same to it")
      .whole_number_or(1, 1'000'000'000, "all");
  command.option("--seed", arguments.seed, "Seed of random images, and of histories")
      .whole_number(0, ~std::uint64_t{0});
  command.flag("--steps", arguments.steps, "Explores a method without each of its steps, too");
  command
      .option("--points", arguments.points,
              "Crash points to try in each history of a system, FIRST-LAST, FIRST- or FIRST alone, "
              "and /STRIDE for one in so many: continues an exploration or replays a loss. For "
              "--strategy sequences:N and pairs the sequences, for --fails power,power the stride "
              "of both")
      .check(problem_with_points);
  command.option("--schedule", arguments.schedule, "Only this history of a system" + schedules())
      .one_of(schedule_names());
  command
      .option("--fails", arguments.fails,
              fmt::format("What fails of a system: {} (default: power, of all servers). power:N "
                          "and process:N: every N of the servers at once. power,power: twice, with "
                          "--strategy, each time of all servers or of one alone, which is back at "
                          "once or after 100 us",
                          fmt::join(explore::kFailureKinds, ", ")))
      .check(problem_with_fails);
  command
      .option("--strategy", arguments.strategy,
              "sequences:N: explores every sequence of N operations that the system's service has, "
              "with a failure in the last one; pairs: every two operations on the same names that "
              "two clients do at "
              "once, with a failure in either. Others explore the schedules of small random "
              "histories of a system, with a power failure wherever it makes a difference. "
              "exhaustive: all schedules; bounded:N: all with at most N late messages (default: "
              "1); pct:N: random ones, with the probability of finding a bug that needs N - 1 of "
              "them (default: 2); random. With ',placements', what a device has received may reach "
              "memory late, too")
      .check(problem_with_strategy);
  command
      .option("--histories", arguments.histories,
              "For --strategy: N or NxM: so many histories, whose seeds count from --seed "
              "(default: 20), and at most M schedules of each (default: all; of pct and random "
              "100)")
      .check(problem_with_histories);
  command
      .option("--expect", arguments.expected,
              "For --strategy: looks for a run that keeps less than this level (default: durable)")
      .one_of({"atomic", "ordered", "durable-writes", "durable"});
}

}  // namespace

void add_crash(harness::Command& program, CommandContext& context) {
  const auto arguments = std::make_shared<CrashArguments>();
  harness::Command& command = program.subcommand(
      "crash", "Explores what a power failure leaves; ends with 1 if anything can be lost");
  const harness::Option target =
      command.option("target", arguments->target,
                     "A method of remote persistence, a file with the steps of one, or a system");
  arguments->configuration.add_to(command);
  command.option("--parameter", arguments->parameters, "A parameter of the system, NAME=VALUE");
  command
      .option("--persistence", arguments->persistence,
              "How a system's puts persist: as in its paper, or so that they are durable "
              "when they are acknowledged")
      .one_of({"paper", "correct"});
  command.option(
      "--profile", arguments->profile,
      fmt::format("Testbed on whose model the system runs (default: {})", kUsualCrashProfile));
  add_what_is_tried(command, *arguments);
  command
      .option("-j,--threads", arguments->threads,
              "How many threads explore a system (default: one for each processor)")
      .whole_number(1, 1024);
  command.option("-o,--out", arguments->folder,
                 "Folder for what is found of a system (default: out/crash)");
  command
      .option("--replay", arguments->replay,
              "Repeats the finding in this file, which perdura soak or perdura crash has written")
      .excludes(target);
  command.option("--diagram", arguments->diagram,
                 "File for a space-time diagram (SVG) of the first loss of a system");
  command.flag("--json", arguments->as_json, "Writes JSON");
  command.does([arguments, &command, &context] { return crash(command, *arguments, context); });
}

}  // namespace perdura::program
