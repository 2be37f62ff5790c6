// perdura crash SYSTEM --strategy: explores schedules of small histories of a system.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "explore/answer.h"
#include "explore/crash.h"
#include "explore/schedules.h"
#include "harness/run/long_work.h"
#include "harness/text/output_place.h"
#include "platform/base/error.h"
#include "program/crash_arguments.h"
#include "program/finding_file.h"
#include "systems/registry/registry.h"

namespace perdura::program {

namespace {

using explore::StrategyKind;

constexpr std::string_view kUsualProfile = "erda-connectx3";

void check(const CrashArguments& arguments, StrategyKind strategy) {
  const auto refuse = [](std::string_view option, std::string_view why) {
    throw UsageError(fmt::format("crash: {} {}", option, why));
  };
  constexpr std::string_view kNotMoments = "is for crash points of a history; a strategy tries all";
  if (arguments.from || arguments.to) refuse("--from and --to", kNotMoments);
  if (arguments.schedule) refuse("--schedule", "is without --strategy, which makes histories");
  if (arguments.failing) refuse("--failing", "is without --strategy: the power of all fails");
  if (arguments.failure) refuse("--failure", "is without --strategy: power fails");
  if (arguments.steps) refuse("--steps", "is for methods; a system has none");
  if (arguments.exhaustive) refuse("--exhaustive", "is for methods; use --strategy exhaustive");
  if (arguments.diagram)
    refuse("--diagram", "is without --strategy; it writes one for each finding");
  if (arguments.images || arguments.threads > 0) {
    refuse("--images and --threads", "are for crash points of a history");
  }
  if (arguments.as_json) refuse("--json", "is without --strategy; it writes files");
  if (arguments.stride && arguments.failures != 2) refuse("--stride", "is for --failures 2");
  if (arguments.deviations && strategy != StrategyKind::bounded) {
    refuse("--delays", "is for --strategy bounded");
  }
  if (arguments.depth && strategy != StrategyKind::pct) refuse("--depth", "is for --strategy pct");
}

// The explored setting that the arguments select; a finding's file refers to it by name.
explore::ExploredSetting setting_of(const services::SystemInfo& system,
                                    const CrashArguments& arguments) {
  const GivenParameters parameters = given_parameters(system, arguments);
  const bool correct = arguments.persistence == "correct";
  for (const explore::ExploredSetting& setting : explore::explored_settings(system)) {
    if (setting.parameters == parameters && setting.correct == correct) return setting;
  }
  throw UsageError(
      "crash: --strategy tries a system as published, with one of the parameters that change what "
      "it guarantees, or with --persistence correct");
}

std::string count(std::uint64_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", number, number == 1 ? one : many);
}

std::string text_of(const explore::ScheduleOptions& options,
                    const explore::ScheduleResult& result) {
  std::string text = fmt::format("{}, {}", count(result.histories, "history", "histories"),
                                 count(result.schedules, "schedule", "schedules"));
  if (options.strategy == StrategyKind::bounded) {
    text += fmt::format(" with at most {}", count(options.deviations, "delay", "delays"));
  }
  text +=
      fmt::format(", {}, seed {}",
                  options.failures == 1 ? count(result.failures, "failure", "failures")
                                        : count(result.failures, "run with two", "runs with two"),
                  options.seed);
  if (options.strategy != StrategyKind::pct) return text;
  return text + fmt::format(
                    "; k = {}: a schedule finds a bug of depth {} of its history with a "
                    "probability of at least {:.2g}",
                    result.choices, options.depth, result.probability);
}

}  // namespace

harness::ExitCode crash_schedules(const CrashArguments& arguments, const CommandContext& context) {
  explore::ScheduleOptions options;
  const auto& names = explore::kStrategies;
  options.strategy = static_cast<StrategyKind>(
      std::find(std::begin(names), std::end(names), *arguments.strategy) - std::begin(names));
  check(arguments, options.strategy);
  if (const std::string problem = harness::problem_with_output_folder(arguments.folder);
      !problem.empty()) {
    throw UsageError(fmt::format("crash: --out {}: {}", arguments.folder, problem));
  }
  options.deviations =
      static_cast<std::uint32_t>(arguments.deviations.value_or(options.deviations));
  options.depth = static_cast<std::uint32_t>(arguments.depth.value_or(options.depth));
  options.histories = arguments.histories.value_or(options.histories);
  options.schedules = arguments.schedules.value_or(options.schedules);
  options.seed = arguments.seed;
  options.failures = static_cast<std::uint32_t>(arguments.failures.value_or(options.failures));
  options.stride = arguments.stride.value_or(options.stride);
  options.random_images = static_cast<std::uint32_t>(arguments.samples);
  const std::string profile_name = arguments.profile.value_or(std::string(kUsualProfile));
  const sim::Profile profile = sim::load_profile(
      context.locations.find(harness::FileKind::profile, {profile_name, "--profile"}).string());
  const services::ServedSystem system = *systems::find_system(arguments.target);
  const explore::ExploredSetting setting = setting_of(system.info, arguments);
  // Independent of the table of guarantees, since the goal is to find the first loss.
  const services::GuaranteeLevel expected =
      arguments.expected ? services::guarantee_of_word(*arguments.expected).value()
                         : services::GuaranteeLevel::durable;
  bool all_kept = true;
  const auto models = system_models(arguments.configuration);
  harness::LongWork work(models.size(), context.ranks);
  for (const pmem::PersistenceModel& model : models) {
    const explore::SoakCase one{system, setting, model, expected, arguments.late_placements};
    work.begin(one.name());
    if (const std::string why = explore::refusal(system.info, one.setup(), profile.nic);
        !why.empty()) {
      work.skip();
      fmt::print("{}: refused: {}\n", one.name(), why);
      continue;
    }
    options.progress = [&](double share) { work.within(one.name(), share); };
    options.stop = [] { return harness::interrupted(); };
    const explore::ScheduleResult result = explore_schedules(one, profile, options);
    // skip() throws if a signal has arrived, so it is called only if there is no finding to print.
    if (!result.finding) work.skip();
    work.close();
    const explore::Answer answer = explore::answer_of(
        system.info, one.setup(), result.finding ? result.finding->run.kept : expected);
    all_kept = all_kept && answer.level() >= expected;
    const std::string tried = text_of(options, result);
    if (result.finding) {
      fmt::print("{}: {}; {}\n", one.name(), to_string(result.finding->run.kept), tried);
    } else if (answer.looked_less_closely()) {
      fmt::print("{}: {}\n", one.name(), answer.beside_what_is_known(tried));
    } else {
      fmt::print("{}: {} in all; {}\n", one.name(), to_string(expected), tried);
    }
    std::fflush(stdout);
    if (result.finding) {
      fmt::print(
          "{}\nperdura crash --replay {} repeats and explains it; beside it is a diagram\n\n",
          result.finding->text(),
          write_finding(*result.finding, profile_name, profile, arguments.folder).string());
      std::fflush(stdout);
      work.skip();
    }
  }
  return all_kept ? harness::ExitCode::done : harness::ExitCode::failed;
}

}  // namespace perdura::program
