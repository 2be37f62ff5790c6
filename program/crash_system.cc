// perdura crash SYSTEM: runs small histories of a system with a power failure at every crash point.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "explore/answer.h"
#include "explore/crash.h"
#include "explore/explored.h"
#include "harness/run/long_work.h"
#include "harness/text/atomic_file.h"
#include "harness/text/output_place.h"
#include "platform/base/error.h"
#include "platform/base/json.h"
#include "platform/base/suggestion.h"
#include "program/crash_arguments.h"
#include "systems/registry/registry.h"

namespace perdura::program {

namespace {

using services::Condition;

constexpr std::uint32_t kUsualImages = 2;

// A value as it is written on the command line, of the type that the parameter is declared with.
std::optional<ParameterValue> read_value(const Parameter& parameter, const std::string& text) {
  if (std::holds_alternative<OneOf>(parameter.type) ||
      std::holds_alternative<Name>(parameter.type)) {
    return ParameterValue(text);
  }
  if (text == "true" || text == "false") return ParameterValue(text == "true");
  const char* const end = text.data() + text.size();
  std::uint64_t number = 0;
  if (const auto read = std::from_chars(text.data(), end, number);
      read.ec == std::errc() && read.ptr == end) {
    return ParameterValue(number);
  }
  double real = 0;
  if (const auto read = std::from_chars(text.data(), end, real);
      read.ec == std::errc() && read.ptr == end) {
    return ParameterValue(real);
  }
  return std::nullopt;
}

// The loss that tells most, if the result is not durable.
const explore::Guarantee& worst_loss(const explore::CrashResult& result) {
  for (const Condition condition :
       {Condition::atomic, Condition::ordered, Condition::acknowledged}) {
    if (!result.guarantees[condition].held) return result.guarantees[condition];
  }
  return result[Condition::durable];
}

// The two conditions of durability, each with its own judgment.
std::string conditions_of(const services::Service& service, const explore::CrashResult& result) {
  return fmt::format("{} {}, {} {}", service.acknowledged(),
                     result[Condition::acknowledged].held ? "survive" : "are lost",
                     service.observed(), result[Condition::observed].held ? "survives" : "is lost");
}

}  // namespace

GivenParameters given_parameters(const services::SystemInfo& system,
                                 const CrashArguments& arguments) {
  GivenParameters parameters;
  for (const std::string& text : arguments.parameters) {
    const auto refuse = [&](std::string_view why) {
      throw UsageError(fmt::format("crash: --parameter {}: {}", text, why));
    };
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals + 1 == text.size()) refuse("give NAME=VALUE");
    const std::string name = text.substr(0, equals);
    const Parameter* const parameter = find_parameter(system.parameters, name);
    if (parameter == nullptr) {
      std::vector<std::string_view> names;
      for (const Parameter& known : system.parameters) names.push_back(known.name);
      refuse(names.empty() ? fmt::format("{} has no parameters", system.name)
                           : unknown_name("parameter", name, names));
    }
    const auto value = read_value(*parameter, text.substr(equals + 1));
    // A value that cannot be parsed has the wrong type for every parameter.
    const std::string problem =
        parameter->problem_with(value.value_or(ParameterValue(text.substr(equals + 1))));
    if (!problem.empty()) refuse(fmt::format("{} {}", name, problem));
    parameters[name] = parameter->of_type(*value);
    // An exploration runs nothing that the program was not built with: what it found would hold for
    // the file of this moment alone, and be told of the name.
    if (name == "plugins" && text.find('/') != std::string::npos) {
      refuse(
          "plugins that are files are for 'perdura run' and 'perdura mcas serve'; an exploration "
          "takes built-in ones, by their names");
    }
  }
  return parameters;
}

std::vector<pmem::PersistenceModel> system_models(const ConfigurationOptions& options) {
  std::vector<pmem::PersistenceModel> models;
  for (const methods::Configuration& configuration : options.matching()) {
    if (models.empty() || !(models.back() == configuration.model)) {
      models.push_back(configuration.model);
    }
  }
  return models;
}

void check_diagram(const CrashArguments& arguments) {
  if (!arguments.diagram) return;
  const std::string problem = harness::problem_with_output_file(*arguments.diagram);
  if (problem.empty()) return;
  throw UsageError(fmt::format("crash: --diagram {}: {}", *arguments.diagram, problem));
}

bool is_system(const std::string& name) { return systems::find_system(name).has_value(); }

namespace {

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

std::string of_what(explore::FailureKind failure) {
  return failure == explore::FailureKind::power ? "" : fmt::format(" of a {}", to_string(failure));
}

// "127 crash points exhausted; 845 recoveries cover all 1266 images".
std::string text_of(const explore::ImageCoverage& coverage) {
  const auto number = [](std::uint64_t count) {
    return count == pmem::kCountless ? "more than 10^19" : fmt::format("{}", count);
  };
  const bool all = coverage.sampled == 0;
  return fmt::format("{} crash points exhausted{}; {} recoveries cover {} {} images",
                     coverage.exhausted, all ? "" : fmt::format(", {} sampled", coverage.sampled),
                     coverage.recoveries, all ? "all" : number(coverage.covered) + " of",
                     number(coverage.images));
}

Json as_json(const explore::ImageCoverage& coverage) {
  return {{"sampled", coverage.sampled > 0},     {"moments_exhausted", coverage.exhausted},
          {"moments_sampled", coverage.sampled}, {"recoveries", coverage.recoveries},
          {"images_covered", coverage.covered},  {"images_possible", coverage.images}};
}

explore::FailureKind failure_of(const CrashArguments& arguments) {
  const auto& kinds = explore::kFailureKinds;
  const auto found = std::find(std::begin(kinds), std::end(kinds), arguments.failure.value_or(""));
  return found == std::end(kinds) ? explore::FailureKind::power
                                  : static_cast<explore::FailureKind>(found - std::begin(kinds));
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
std::string crash_points_of(const CrashArguments& arguments, const explore::CrashResult& result) {
  if (!arguments.from && !arguments.to) return fmt::format("{} crash points", result.crash_points);
  return fmt::format(
      "crash points {} to {} of each history, of {} in all", arguments.from.value_or(0),
      arguments.to && *arguments.to < result.crash_points ? fmt::format("{}", *arguments.to)
                                                          : "the last",
      result.crash_points);
}

}  // namespace

harness::ExitCode crash_system(const CrashArguments& arguments, const CommandContext& context) {
  if (arguments.exhaustive) {
    throw UsageError("crash: a system has more images than can be tried; use --samples");
  }
  if (arguments.configuration.receive_buffers) {
    throw UsageError("crash: --receive-buffers is for methods; a system's are where it puts them");
  }
  if (arguments.steps) throw UsageError("crash: --steps is for methods; a system has none");
  if (arguments.diagram && arguments.images) {
    throw UsageError("crash: --diagram and --images exclude each other");
  }
  if (arguments.diagram && arguments.as_json) {
    throw UsageError("crash: --diagram and --json exclude each other");
  }
  check_diagram(arguments);
  const sim::Profile profile =
      sim::load_profile(context.locations
                            .find(harness::FileKind::profile,
                                  {arguments.profile.value_or("erda-connectx3"), "--profile"})
                            .string());
  explore::CrashOptions options;
  const services::ServedSystem system = *systems::find_system(arguments.target);
  options.setup.parameters = given_parameters(system.info, arguments);
  options.first = arguments.from.value_or(options.first);
  options.last = arguments.to.value_or(options.last);
  if (options.last < options.first) {
    throw UsageError(
        fmt::format("crash: --to {} comes before --from {}", options.last, options.first));
  }
  options.setup.correct = arguments.persistence == "correct";
  options.setup.seed = arguments.seed;
  options.random_images =
      arguments.samples > 0 ? static_cast<std::uint32_t>(arguments.samples) : kUsualImages;
  options.schedule = arguments.schedule.value_or("");
  options.failing = static_cast<NodeId>(arguments.failing.value_or(0));
  options.failure = failure_of(arguments);
  if (!of_servers(options.failure) && arguments.failing) {
    throw UsageError(fmt::format("crash: --failing is for servers; with --failure {} one fails",
                                 to_string(options.failure)));
  }
  if (options.failure != explore::FailureKind::power && arguments.samples > 0) {
    throw UsageError(
        fmt::format("crash: --samples is for power failures; with --failure {} there "
                    "is one image at a crash point",
                    to_string(options.failure)));
  }
  if (arguments.images) {
    if (options.failure != explore::FailureKind::power || arguments.failing) {
      throw UsageError("crash: --images is for failures of the power of all servers");
    }
    if (arguments.samples > 0) {
      throw UsageError("crash: --images and --samples exclude each other");
    }
    options.recoveries = *arguments.images == "all" ? 0 : std::stoull(*arguments.images);
    options.threads = static_cast<unsigned>(arguments.threads);
  } else if (arguments.threads > 0) {
    throw UsageError("crash: --threads is for --images; else one thread explores");
  }
  Json results = Json::array();
  bool all_durable = true;
  std::string trace;
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
    if (result.coverage ? result.coverage->recoveries == 0 : result.runs == 0) {
      throw UsageError(fmt::format("crash: --from {} is beyond the last of {} crash points, {}",
                                   options.first, result.crash_points, result.crash_points - 1));
    }
    const explore::Answer answer = answer_of(system.info, options, result);
    all_durable = all_durable && answer.level() == services::GuaranteeLevel::durable &&
                  result.unexplored.empty();
    if (arguments.as_json) {
      const bool closest = !answer.looked_less_closely();
      // "Nothing is lost" is unknown where another exploration has found a loss.
      const auto survives = [&](const explore::Guarantee& condition) {
        return condition.held && !closest ? Json() : Json(condition.held);
      };
      Json found{{"guarantee", to_string(answer.level())},
                 {"found", to_string(answer.found)},
                 {"known", answer.known ? Json(to_string(*answer.known)) : Json()},
                 {"known_from_revision", explore::explored_revision()},
                 {"acknowledged_writes_survive", survives(result[Condition::acknowledged])},
                 {"what_gets_returned_survives", survives(result[Condition::observed])},
                 {"moments", result.crash_points},
                 {"events", result.events},
                 {"unexplored", result.unexplored},
                 {"seed", arguments.seed},
                 {"failure", to_string(options.failure)},
                 {"trace", result[Condition::durable].held ? "" : worst_loss(result).first_loss}};
      found.update(result.coverage ? as_json(*result.coverage)
                                   : Json{{"failures", result.runs}, {"images", result.images}});
      results.push_back(of_server(arguments.target, model, found));
      continue;
    }
    const std::string tried = result.coverage
                                  ? text_of(*result.coverage)
                                  : fmt::format("{} failures{}, {} images", result.runs,
                                                of_what(options.failure), result.images);
    const std::string found =
        answer.looked_less_closely()
            ? fmt::format("{}; {}", answer.beside_what_is_known(tried),
                          crash_points_of(arguments, result))
            : fmt::format("{}; {}, {}", conditions_of(*system.service, result),
                          crash_points_of(arguments, result), tried);
    fmt::print("{} on {:<18} {:<15} {}, seed {}{}\n", arguments.target, name + ":",
               to_string(answer.level()), found, arguments.seed, events_of(result));
    std::fflush(stdout);
    if (trace.empty() && !result[Condition::durable].held) {
      trace = fmt::format("\non {}:\n{}", name, worst_loss(result).first_loss);
      if (arguments.diagram) {
        const explore::Diagram diagram = explain_loss(system, profile, options, worst_loss(result));
        harness::write_atomically(*arguments.diagram, as_svg(diagram));
        trace += fmt::format("\n{}", as_text(diagram));
      }
    }
  }
  if (arguments.as_json) {
    fmt::print("{}\n", results.dump(2));
  } else {
    fmt::print("{}", trace);
    if (arguments.diagram && trace.empty()) {
      fmt::print("nothing lost was found: {} is not written\n", *arguments.diagram);
    }
  }
  return all_durable ? harness::ExitCode::done : harness::ExitCode::failed;
}

}  // namespace perdura::program
