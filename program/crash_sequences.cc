// perdura crash SYSTEM --sequences: explores every short sequence of operations of a system.
#include <fmt/format.h>

#include "explore/answer.h"
#include "explore/crash.h"
#include "explore/explored.h"
#include "explore/sequences.h"
#include "harness/run/long_work.h"
#include "platform/base/error.h"
#include "program/crash_arguments.h"
#include "systems/registry/registry.h"

namespace perdura::program {

namespace {

void check_for_sequences(const CrashArguments& arguments) {
  const auto refuse = [](std::string_view option, std::string_view why) {
    throw UsageError(fmt::format("crash: {} {}", option, why));
  };
  if (arguments.strategy) refuse("--strategy", "and --sequences exclude each other");
  if (arguments.schedule) refuse("--schedule", "is without --sequences, which are histories");
  if (arguments.failing) refuse("--failing", "is without --sequences: the power of all fails");
  if (arguments.failure) refuse("--failure", "is without --sequences: power fails");
  if (arguments.steps) refuse("--steps", "is for methods; a system has none");
  if (arguments.exhaustive) refuse("--exhaustive", "is for methods; use --images all");
  if (arguments.samples > 0) refuse("--samples", "is without --sequences; use --images");
  if (arguments.diagram) refuse("--diagram", "is without --sequences");
  if (arguments.as_json) refuse("--json", "is without --sequences");
}

std::string text_of(const explore::SequenceResult& result) {
  const explore::ImageCoverage& coverage = result.coverage;
  const auto number = [](std::uint64_t count) {
    return count == pmem::kCountless ? "more than 10^19" : fmt::format("{}", count);
  };
  return fmt::format(
      "{} sequences, {} crash points ({} exhausted), {} recoveries cover {} of {} images, {} "
      "states "
      "found",
      result.sequences, result.crash_points, coverage.exhausted, coverage.recoveries,
      number(coverage.covered), number(coverage.images), result.states);
}

}  // namespace

harness::ExitCode crash_sequences(const CrashArguments& arguments, const CommandContext& context) {
  constexpr std::uint64_t kUsualRecoveries[] = {200, 6};
  check_for_sequences(arguments);
  const sim::Profile profile =
      sim::load_profile(context.locations
                            .find(harness::FileKind::profile,
                                  {arguments.profile.value_or("erda-connectx3"), "--profile"})
                            .string());
  const services::ServedSystem system = *systems::find_system(arguments.target);
  explore::SequenceOptions options;
  options.setup.parameters = given_parameters(system.info, arguments);
  options.setup.correct = arguments.persistence == "correct";
  options.setup.seed = arguments.seed;
  options.length = static_cast<std::uint32_t>(*arguments.sequences);
  // For single operations, nearly all images are tried. For longer sequences there may be too many:
  // where recovery checksums possibly torn data, it distinguishes every image.
  const std::string images = arguments.images.value_or(
      std::to_string(options.length == 1 ? kUsualRecoveries[0] : kUsualRecoveries[1]));
  options.recoveries = images == "all" ? 0 : std::stoull(images);
  options.first = arguments.from.value_or(options.first);
  options.last = arguments.to.value_or(options.last);
  options.stride = arguments.stride.value_or(options.stride);
  options.threads = static_cast<unsigned>(arguments.threads);
  const auto models = system_models(arguments.configuration);
  harness::LongWork work(models.size(), context.ranks);
  bool all_kept = true;
  for (const pmem::PersistenceModel& model : models) {
    options.setup.model = model;
    const std::string name =
        fmt::format("{} on {}", arguments.target, explore::explored_name(model));
    work.begin(name);
    if (const std::string why = explore::refusal(system.info, options.setup, profile.nic);
        !why.empty()) {
      work.skip();
      fmt::print("{}: refused: {}\n", name, why);
      continue;
    }
    options.progress = [&](double share) { work.within(name, share); };
    const explore::SequenceResult result = explore_sequences(system, profile, options);
    work.skip();
    const explore::Answer answer = explore::answer_of(system.info, options.setup, options.expected);
    all_kept = all_kept && !result.loss && !answer.looked_less_closely();
    const std::string tried = text_of(result);
    std::string kept;
    if (result.loss) {
      kept = fmt::format("less than {}; {}", to_string(options.expected), tried);
    } else if (answer.looked_less_closely()) {
      kept = answer.beside_what_is_known(tried);
    } else {
      kept = fmt::format("{} in all; {}", to_string(options.expected), tried);
    }
    fmt::print("{}: {}, seed {}\n", name, kept, arguments.seed);
    if (result.loss) {
      fmt::print("\nsequence {}: {}\n{}\n", result.loss->number, result.loss->name,
                 result.loss->why);
    }
    std::fflush(stdout);
  }
  return all_kept ? harness::ExitCode::done : harness::ExitCode::failed;
}

}  // namespace perdura::program
