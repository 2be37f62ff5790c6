// perdura crash SYSTEM: runs small histories of a system with a power failure at every crash point.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <optional>

#include "explore/answer.h"
#include "explore/crash.h"
#include "explore/explored.h"
#include "explore/history_loss.h"
#include "harness/run/long_work.h"
#include "platform/base/error.h"
#include "platform/base/json.h"
#include "program/crash_arguments.h"
#include "program/crash_text.h"
#include "program/finding_file.h"
#include "systems/registry/registry.h"

namespace perdura::program {

namespace {

using services::Condition;

// The two conditions of durability, each with its own judgment.
std::string conditions_of(const services::Service& service, const explore::CrashResult& result) {
  return fmt::format("{} {}, {} {}", service.acknowledged(),
                     result[Condition::acknowledged].held ? "survive" : "are lost",
                     service.observed(), result[Condition::observed].held ? "survives" : "is lost");
}

// The events that occurred in the histories and their recoveries.
std::string events_of(const explore::CrashResult& result) {
  std::string text;
  for (const auto& [name, count] : result.events) {
    text += fmt::format("{}{} {}", text.empty() ? "; " : ", ", count, name);
  }
  if (!result.unexplored.empty()) {
    text += fmt::format("; explored nothing of: {}", fmt::join(result.unexplored, ", "));
  }
  return text;
}

Json as_json(const explore::ImageCoverage& coverage) {
  return {{"sampled", coverage.sampled > 0},     {"moments_exhausted", coverage.exhausted},
          {"moments_sampled", coverage.sampled}, {"recoveries", coverage.recoveries},
          {"images_covered", coverage.covered},  {"images_possible", coverage.images}};
}

void check_not_all_refused(const services::SystemInfo& system, services::CrashSetup setup,
                           const std::vector<pmem::PersistenceModel>& models,
                           const sim::Profile& profile) {
  std::string why;
  for (const pmem::PersistenceModel& model : models) {
    setup.model = model;
    why = explore::refusal(system, setup, profile.nic);
    if (why.empty()) return;
  }
  if (!why.empty()) throw UsageError(fmt::format("crash: {} {}", system.name, why));
}

Json of_server(const std::string& system, const pmem::PersistenceModel& model, const Json& found) {
  Json result{{"system", system},
              {"domain", to_string(model.domain)},
              {"ddio", model.ddio},
              {"transport", to_string(model.transport)}};
  result.update(found);
  return result;
}

// "1013 crash points", or, if only some of them were tried, which.
std::string crash_points_of(const CrashPoints& points, const explore::CrashResult& result) {
  if (points.are_all()) return fmt::format("{} crash points", result.crash_points);
  return fmt::format(
      "crash points {} to {}{} of each history, of {} in all", points.first,
      points.last < result.crash_points ? fmt::format("{}", points.last) : "the last",
      points.stride == 1 ? "" : fmt::format(", one in {}", points.stride), result.crash_points);
}

explore::CrashOptions options_of(const services::SystemInfo& system,
                                 const CrashArguments& arguments) {
  const CrashPoints points = points_of(arguments);
  explore::CrashOptions options;
  options.setup.parameters = given_parameters(system, arguments);
  options.setup.correct = arguments.persistence == "correct";
  options.setup.seed = arguments.seed;
  options.recoveries = images_of(arguments, options.recoveries);
  options.first = points.first;
  options.last = points.last;
  options.stride = points.stride;
  options.schedule = arguments.schedule.value_or("");
  options.fails = one_failure_of(arguments);
  options.threads = static_cast<unsigned>(arguments.threads);
  return options;
}

// The finding on one kind of server, and its answer.
struct ServerAnswer {
  pmem::PersistenceModel model;
  explore::CrashResult result;
  explore::Answer answer;
  std::optional<explore::HistoryLoss> loss{};  // the one that tells most
};

// Writes the file of the loss on a server.
auto writing(const CrashArguments& arguments, const sim::Profile& profile,
             const explore::HistoryLoss& loss) {
  return [&](const std::filesystem::path& folder) {
    return write_finding(loss, profile_name(arguments), profile, folder);
  };
}

// Empty if it cannot be written.
std::string file_of(const CrashArguments& arguments, const sim::Profile& profile,
                    const explore::HistoryLoss& loss) {
  std::string problem;
  return write_found(arguments, writing(arguments, profile, loss), problem)
      .value_or(std::filesystem::path())
      .string();
}

Json as_json(const CrashArguments& arguments, const sim::Profile& profile,
             const ServerAnswer& found) {
  const auto& [model, result, answer, loss] = found;
  // "Nothing is lost" is unknown where another exploration has found a loss.
  const auto survives = [&](Condition condition) {
    const bool held = result[condition].held;
    return held && answer.looked_less_closely() ? Json() : Json(held);
  };
  Json cells{{"guarantee", to_string(answer.level())},
             {"found", to_string(answer.found)},
             {"known", answer.known ? Json(to_string(*answer.known)) : Json()},
             {"known_from_revision", explore::explored_revision()},
             {"acknowledged_writes_survive", survives(Condition::acknowledged)},
             {"what_gets_returned_survives", survives(Condition::observed)},
             {"moments", result.crash_points},
             {"events", result.events},
             {"unexplored", result.unexplored},
             {"seed", arguments.seed},
             {"failure", to_string(fails_of(arguments).what.kind)},
             {"trace", loss ? result[worst_lost(result)].first_loss : ""},
             {"replay", loss ? file_of(arguments, profile, *loss) : ""}};
  cells.update(as_json(result.coverage));
  return of_server(arguments.target, model, cells);
}

void print(const CrashArguments& arguments, const services::Service& service,
           const ServerAnswer& found) {
  const auto& [model, result, answer, loss] = found;
  const explore::FailureKind kind = fails_of(arguments).what.kind;
  const std::string crash_points = crash_points_of(points_of(arguments), result);
  const std::string tried =
      kind == explore::FailureKind::power
          ? text_of(result.coverage)
          : fmt::format("{} failures of a {}", result.coverage.recoveries, to_string(kind));
  const std::string what =
      answer.looked_less_closely()
          ? fmt::format("{}; {}", answer.beside_what_is_known(tried), crash_points)
          : fmt::format("{}; {}, {}", conditions_of(service, result), crash_points, tried);
  fmt::print("{} on {:<18} {:<15} {}, seed {}{}\n", arguments.target,
             explore::explored_name(model) + ":", to_string(answer.level()), what, arguments.seed,
             events_of(result));
  std::fflush(stdout);
}

// Prints the loss, if a diagram is asked for what it shows, and the loss's file. If the file cannot
// be written, the loss has been told.
void print(const CrashArguments& arguments, const sim::Profile& profile,
           const explore::HistoryLoss& loss) {
  fmt::print("\non {}:\n{}{}", explore::explored_name(loss.where.model), loss.text,
             arguments.diagram ? explanation_of(arguments, loss, profile) : "");
  std::fflush(stdout);
  fmt::print("\n{}\n", text_of_found(arguments, writing(arguments, profile, loss)));
}

void check_tried(const CrashArguments& arguments, const explore::CrashOptions& options,
                 const explore::CrashResult& result) {
  if (result.coverage.recoveries > 0) return;
  if (!arguments.points) {
    throw UsageError(
        fmt::format("crash: nothing failed: at none of the {} crash points of {} could a {} fail",
                    result.crash_points, arguments.target, to_string(options.fails.kind)));
  }
  throw UsageError(fmt::format("crash: --points {}: the last of {} crash points is {}",
                               *arguments.points, result.crash_points, result.crash_points - 1));
}

}  // namespace

harness::ExitCode crash_system(const CrashArguments& arguments, const CommandContext& context) {
  if (arguments.diagram && arguments.as_json) {
    throw UsageError("crash: --diagram and --json exclude each other");
  }
  check_diagram(arguments);
  check_folder(arguments);
  const sim::Profile profile = crash_profile(arguments, context);
  const services::ServedSystem system = *systems::find_system(arguments.target);
  explore::CrashOptions options = options_of(system.info, arguments);
  Json results = Json::array();
  bool all_durable = true;
  std::optional<explore::HistoryLoss> first_loss;
  const auto models = system_models(arguments.configuration);
  check_not_all_refused(system.info, options.setup, models, profile);
  harness::LongWork work(models.size(), context.ranks);
  for (const pmem::PersistenceModel& model : models) {
    options.setup.model = model;
    const std::string name = explore::explored_name(model);
    work.begin(name);
    if (const std::string why = explore::refusal(system.info, options.setup, profile.nic);
        !why.empty()) {
      work.skip();
      if (arguments.as_json) {
        results.push_back(of_server(arguments.target, model, {{"refused", why}}));
      } else {
        fmt::print("{} on {:<18} refused: {}\n", arguments.target, name + ":", why);
      }
      continue;
    }
    options.progress = [&](double share) { work.within(name, share); };
    const explore::CrashResult result = explore_crashes(system, profile, options);
    work.skip();
    check_tried(arguments, options, result);
    ServerAnswer found{model, result, answer_of(system.info, options, result)};
    if (!result[Condition::durable].held) {
      found.loss = loss_of(system, options, result, worst_lost(result));
    }
    all_durable = all_durable && found.answer.level() == services::GuaranteeLevel::durable &&
                  result.unexplored.empty();
    if (arguments.as_json) {
      results.push_back(as_json(arguments, profile, found));
      continue;
    }
    print(arguments, *system.service, found);
    if (!first_loss) first_loss = found.loss;
  }
  if (arguments.as_json) {
    fmt::print("{}\n", results.dump(2));
  } else if (first_loss) {
    print(arguments, profile, *first_loss);
  } else if (arguments.diagram) {
    fmt::print("nothing lost was found: {} is not written\n", *arguments.diagram);
  }
  return all_durable ? harness::ExitCode::done : harness::ExitCode::failed;
}

}  // namespace perdura::program
