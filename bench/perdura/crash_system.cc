// perdura crash SYSTEM: runs small histories of a system with a power failure at every crash point.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "bench/crash/crash.h"
#include "bench/crash/explored.h"
#include "bench/perdura/crash_arguments.h"
#include "harness/run/long_work.h"
#include "platform/base/error.h"
#include "systems/registry/registry.h"

namespace perdura::harness {

using nlohmann::json;

namespace {

constexpr std::uint32_t kUsualImages = 2;

GivenParameters read_parameters(const std::vector<std::string>& given) {
  GivenParameters parameters;
  for (const std::string& text : given) {
    const std::size_t equals = text.find('=');
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    std::from_chars_result read{text.data(), std::errc::invalid_argument};
    if (equals != std::string::npos) read = std::from_chars(text.data() + equals + 1, end, value);
    const bool fits = read.ec == std::errc() && read.ptr == end;
    if (!fits) {
      throw UsageError(
          fmt::format("crash: --parameter {}: give NAME=VALUE, with a whole number", text));
    }
    parameters[text.substr(0, equals)] = value;
  }
  return parameters;
}

const bench::Guarantee& first_broken(const bench::CrashResult& result) {
  if (!result.atomic.held) return result.atomic;
  if (!result.ordered.held) return result.ordered;
  return result.acknowledged.held ? result.durable : result.acknowledged;
}

// The two conditions of durability, each judged separately.
std::string conditions_of(const bench::CrashResult& result) {
  return fmt::format("acknowledged writes {}, what gets returned {}",
                     result.acknowledged.held ? "survive" : "are lost",
                     result.observed.held ? "survives" : "is lost");
}

}  // namespace

bool is_system(const std::string& name) { return systems::find_system(name).has_value(); }

namespace {

std::vector<pmem::PersistenceModel> system_models(const ConfigurationOptions& options) {
  std::vector<pmem::PersistenceModel> models;
  for (const persistence::Configuration& configuration : options.matching()) {
    if (models.empty() || !(models.back() == configuration.model)) {
      models.push_back(configuration.model);
    }
  }
  return models;
}

}  // namespace

ExitCode crash_system(const CrashArguments& arguments, const CommandContext& context) {
  if (arguments.exhaustive) {
    throw UsageError("crash: a system has more images than can be tried; use --samples");
  }
  if (arguments.configuration.receive_buffers) {
    throw UsageError("crash: --receive-buffers is for methods; a system's are where it puts them");
  }
  if (arguments.steps) throw UsageError("crash: --steps is for methods; a system has none");
  const sim::Profile profile = sim::load_profile(
      context.locations
          .find(FileKind::profile, {arguments.profile.value_or("erda-connectx3"), "--profile"})
          .string());
  bench::CrashOptions options;
  options.setup.parameters = read_parameters(arguments.parameters);
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
  json results = json::array();
  bool all_durable = true;
  std::string trace;
  const auto models = system_models(arguments.configuration);
  LongWork work(models.size(), context.ranks);
  for (const pmem::PersistenceModel& model : models) {
    options.setup.model = model;
    const std::string name = bench::explored_name(model);
    work.begin(name);
    options.progress = [&](double share) { work.within(name, share); };
    const bench::CrashResult result =
        explore_crashes(*systems::find_system(arguments.target), profile, options);
    work.skip();
    if (result.runs == 0) {
      throw UsageError(fmt::format("crash: --from {} is beyond the last of {} moments, {}",
                                   options.first, result.moments, result.moments - 1));
    }
    all_durable = all_durable && result.durable.held;
    if (arguments.as_json) {
      results.push_back({{"system", arguments.target},
                         {"domain", to_string(model.domain)},
                         {"ddio", model.ddio},
                         {"transport", to_string(model.transport)},
                         {"guarantee", to_string(result.strongest())},
                         {"acknowledged_writes_survive", result.acknowledged.held},
                         {"what_gets_returned_survives", result.observed.held},
                         {"moments", result.moments},
                         {"failures", result.runs},
                         {"images", result.images},
                         {"seed", arguments.seed},
                         {"trace", result.durable.held ? "" : first_broken(result).first_loss}});
      continue;
    }
    fmt::print("{} on {:<18} {:<15} {}; {} moments, {} failures, {} images, seed {}\n",
               arguments.target, name + ":", to_string(result.strongest()), conditions_of(result),
               result.moments, result.runs, result.images, arguments.seed);
    std::fflush(stdout);
    if (trace.empty() && !result.durable.held) {
      trace = fmt::format("\non {}:\n{}", name, first_broken(result).first_loss);
    }
  }
  if (arguments.as_json) {
    fmt::print("{}\n", results.dump(2));
  } else {
    fmt::print("{}", trace);
  }
  return all_durable ? ExitCode::done : ExitCode::failed;
}

}  // namespace perdura::harness
