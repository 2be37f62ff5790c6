// perdura crash SYSTEM --strategy: explores schedules of small histories of a system.
#include <fmt/format.h>

#include "explore/answer.h"
#include "explore/crash.h"
#include "explore/schedules.h"
#include "harness/run/long_work.h"
#include "platform/base/error.h"
#include "program/crash_arguments.h"
#include "program/finding_file.h"
#include "systems/registry/registry.h"

namespace perdura::program {

namespace {

using explore::StrategyKind;

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

std::string tried_text(const explore::ScheduleOptions& options,
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

namespace {

explore::ScheduleOptions options_of(const CrashArguments& arguments,
                                    const StrategyArgument& strategy) {
  const HistoriesArgument histories = histories_of(arguments);
  const Fails fails = fails_of(arguments);
  const CrashPoints points = points_of(arguments);
  if (!fails.what.are_of_all_power()) {
    throw UsageError(fmt::format(
        "crash: --fails {} is for a system's histories; with --strategy the power of all fails, or "
        "power,power",
        *arguments.fails));
  }
  const bool only_stride = points.first == 0 && points.last == CrashPoints{}.last;
  if (arguments.points && (fails.times == 1 || !only_stride)) {
    throw UsageError(
        "crash: --points is for a system's histories; with --strategy only /STRIDE is, for "
        "--fails power,power");
  }
  explore::ScheduleOptions options;
  options.strategy = strategy.kind;
  if (strategy.kind == StrategyKind::bounded) options.deviations = strategy.number;
  if (strategy.kind == StrategyKind::pct) options.depth = strategy.number;
  options.histories = histories.histories;
  options.schedules = histories.schedules;
  options.seed = arguments.seed;
  options.failures = fails.times;
  options.stride = points.stride;
  options.recoveries = images_of(arguments, options.recoveries);
  options.threads = static_cast<unsigned>(arguments.threads);
  return options;
}

}  // namespace

harness::ExitCode crash_schedules(const CrashArguments& arguments, const CommandContext& context) {
  check_folder(arguments);
  const StrategyArgument strategy = strategy_of(arguments).value();
  explore::ScheduleOptions options = options_of(arguments, strategy);
  const sim::Profile profile = crash_profile(arguments, context);
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
    const explore::SoakCase one{system, setting, model, expected, strategy.late_placements};
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
    const std::string tried = tried_text(options, result);
    if (result.finding) {
      fmt::print("{}: {}; {}\n", one.name(), to_string(result.finding->run.kept), tried);
    } else if (answer.looked_less_closely()) {
      fmt::print("{}: {}\n", one.name(), answer.beside_what_is_known(tried));
    } else {
      fmt::print("{}: {} in all; {}\n", one.name(), to_string(expected), tried);
    }
    std::fflush(stdout);
    if (result.finding) {
      fmt::print("{}\n{}\n\n", result.finding->text(),
                 text_of_found(arguments, [&](const std::filesystem::path& folder) {
                   return write_finding(*result.finding, profile_name(arguments), profile, folder);
                 }));
      std::fflush(stdout);
      work.skip();
    }
  }
  return all_kept ? harness::ExitCode::done : harness::ExitCode::failed;
}

}  // namespace perdura::program
