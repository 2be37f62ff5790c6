// perdura crash SYSTEM --strategy sequences:N: explores every short sequence of operations of a system; --strategy pairs: every two that two of its
// clients do at once.
#include <fmt/format.h>

#include "explore/answer.h"
#include "explore/crash.h"
#include "explore/explored.h"
#include "explore/sequences.h"
#include "harness/run/long_work.h"
#include "platform/base/error.h"
#include "program/crash_arguments.h"
#include "program/crash_text.h"
#include "program/finding_file.h"
#include "systems/registry/registry.h"

namespace perdura::program {

namespace {

// For single operations, nearly all images are tried. For longer sequences there may be too many:
// where recovery checksums possibly torn data, it distinguishes every image. Where servers go on,
// each image takes a whole run.
std::uint64_t usual_recoveries(const explore::SequenceOptions& options) {
  if (!options.fails.are_of_all_power()) return 3;
  return options.kind.length == 1 ? 200 : 6;
}

}  // namespace

harness::ExitCode crash_sequences(const CrashArguments& arguments, const CommandContext& context) {
  check_folder(arguments);
  const sim::Profile profile = crash_profile(arguments, context);
  const services::ServedSystem system = *systems::find_system(arguments.target);
  const CrashPoints points = points_of(arguments);
  explore::SequenceOptions options;
  options.setup.parameters = given_parameters(system.info, arguments);
  options.setup.correct = arguments.persistence == "correct";
  options.setup.seed = arguments.seed;
  options.kind = strategy_of(arguments).value().sequences.value();
  options.fails = one_failure_of(arguments);
  options.recoveries = images_of(arguments, usual_recoveries(options));
  options.first = points.first;
  options.last = points.last;
  options.stride = points.stride;
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
    const explore::Answer answer =
        options.fails.are_of_all_power()
            ? explore::answer_of(system.info, options.setup, options.expected)
            : explore::Answer{options.expected, std::nullopt};
    all_kept = all_kept && !result.loss && !answer.looked_less_closely();
    const std::string tried =
        fmt::format("{} sequences, {} crash points, {}, {} states found", result.sequences,
                    result.crash_points, text_of(result.coverage), result.states);
    std::string kept;
    if (result.loss) {
      kept = fmt::format("less than {}; {}", to_string(options.expected), tried);
    } else if (answer.looked_less_closely()) {
      kept = answer.beside_what_is_known(tried);
    } else {
      kept = fmt::format("{} in all that was tried; {}", to_string(options.expected), tried);
    }
    fmt::print("{}: {}, seed {}\n", name, kept, arguments.seed);
    if (result.loss) {
      const explore::HistoryLoss loss = loss_of(system, options, result);
      fmt::print("\nsequence {}: {}\n{}\n", result.loss->number, result.loss->name,
                 result.loss->why);
      fmt::print("{}\n\n", text_of_found(arguments, [&](const std::filesystem::path& folder) {
                   return write_finding(loss, profile_name(arguments), profile, folder);
                 }));
    }
    std::fflush(stdout);
  }
  return all_kept ? harness::ExitCode::done : harness::ExitCode::failed;
}

}  // namespace perdura::program
