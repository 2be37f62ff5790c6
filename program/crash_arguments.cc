#include "program/crash_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>

#include "harness/text/output_place.h"
#include "platform/base/error.h"
#include "platform/base/suggestion.h"
#include "program/finding_file.h"

namespace perdura::program {

namespace {

constexpr std::string_view kSequences = "sequences";
constexpr std::string_view kPairs = "pairs";
constexpr std::string_view kLatePlacements = "placements";
constexpr std::string_view kTwice = "power,power";
constexpr std::uint32_t kMostServers = 1024;
constexpr std::uint32_t kMostOperations = 4;
constexpr std::uint32_t kMostNumber = 16;
constexpr std::uint64_t kMostHistories = 1'000'000'000;

// Removes and returns what is before the separator, or everything if there is none.
std::string_view next_part(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size()) return {};
  return number;
}

std::optional<CrashPoints> read_points(std::string_view text) {
  CrashPoints points;
  const bool has_stride = text.find('/') != std::string_view::npos;
  std::string_view range = next_part(text, '/');
  if (has_stride) {
    const auto stride = number_in(text);
    if (!stride || *stride == 0) return std::nullopt;
    points.stride = *stride;
  }
  if (range.empty()) return has_stride ? std::optional(points) : std::nullopt;
  const bool is_open = range.find('-') != std::string_view::npos;
  const auto first = number_in(next_part(range, '-'));
  if (!first) return std::nullopt;
  points.first = *first;
  if (!is_open) {
    points.last = *first;
  } else if (!range.empty()) {
    const auto last = number_in(range);
    if (!last || *last < *first) return std::nullopt;
    points.last = *last;
  }
  return points;
}

std::optional<Fails> read_fails(std::string_view text) {
  if (text == kTwice) return Fails{.times = 2};
  Fails fails;
  const bool has_number = text.find(':') != std::string_view::npos;
  const std::string_view name = next_part(text, ':');
  const auto& kinds = explore::kFailureKinds;
  const auto found = std::find(std::begin(kinds), std::end(kinds), name);
  if (found == std::end(kinds)) return std::nullopt;
  fails.what.kind = static_cast<explore::FailureKind>(found - std::begin(kinds));
  if (!has_number) return fails;
  const auto servers = number_in(text);
  if (!servers || *servers == 0 || *servers > kMostServers || !of_servers(fails.what.kind)) {
    return std::nullopt;
  }
  fails.what.servers = static_cast<NodeId>(*servers);
  return fails;
}

std::optional<StrategyArgument> read_strategy(std::string_view text) {
  StrategyArgument strategy;
  std::string_view named = next_part(text, ',');
  if (!text.empty()) {
    if (text != kLatePlacements) return std::nullopt;
    strategy.late_placements = true;
  }
  const bool has_number = named.find(':') != std::string_view::npos;
  const std::string_view name = next_part(named, ':');
  const auto number = has_number ? number_in(named) : std::nullopt;
  if (has_number && (!number || *number > kMostNumber)) return std::nullopt;
  if (name == kSequences) {
    if (strategy.late_placements || !number || *number == 0 || *number > kMostOperations) {
      return std::nullopt;
    }
    strategy.sequences = services::SequenceKind{.length = static_cast<std::uint32_t>(*number)};
    return strategy;
  }
  if (name == kPairs) {
    strategy.sequences = services::SequenceKind{.length = 2, .at_once = true};
    return has_number || strategy.late_placements ? std::nullopt : std::optional(strategy);
  }
  const auto& names = explore::kStrategies;
  const auto found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names)) return std::nullopt;
  strategy.kind = static_cast<explore::StrategyKind>(found - std::begin(names));
  const explore::ScheduleOptions usual;
  switch (strategy.kind) {
    case explore::StrategyKind::bounded:
      strategy.number = static_cast<std::uint32_t>(number.value_or(usual.deviations));
      return strategy;
    case explore::StrategyKind::pct:
      strategy.number = static_cast<std::uint32_t>(number.value_or(usual.depth));
      return strategy.number > 0 ? std::optional(strategy) : std::nullopt;
    case explore::StrategyKind::exhaustive:
    case explore::StrategyKind::random:
      break;
  }
  return has_number ? std::nullopt : std::optional(strategy);
}

std::optional<HistoriesArgument> read_histories(std::string_view text) {
  HistoriesArgument read;
  const bool has_schedules = text.find('x') != std::string_view::npos;
  const auto histories = number_in(next_part(text, 'x'));
  const auto schedules = has_schedules ? number_in(text) : std::optional<std::uint64_t>(0);
  if (!histories || !schedules || *histories == 0 || *histories > kMostHistories ||
      *schedules > kMostHistories || (has_schedules && *schedules == 0)) {
    return std::nullopt;
  }
  return HistoriesArgument{*histories, *schedules};
}

}  // namespace

std::string problem_with_points(const std::string& text) {
  if (read_points(text)) return "";
  return fmt::format("'{}' is not FIRST, FIRST-LAST or FIRST-, perhaps with /STRIDE", text);
}

std::string problem_with_fails(const std::string& text) {
  if (read_fails(text)) return "";
  return fmt::format(
      "'{}' is not one of {} and {}; power and process may be followed by a number of servers, "
      "as in power:1",
      text, fmt::join(explore::kFailureKinds, ", "), kTwice);
}

std::string problem_with_strategy(const std::string& text) {
  if (read_strategy(text)) return "";
  return fmt::format(
      "'{}' is not one of {}:1 to {}:{}, {}, exhaustive, bounded or bounded:DELAYS, pct or "
      "pct:DEPTH, and random; all but sequences and {} may be followed by ,{}",
      text, kSequences, kSequences, kMostOperations, kPairs, kPairs, kLatePlacements);
}

std::string problem_with_histories(const std::string& text) {
  if (read_histories(text)) return "";
  return fmt::format("'{}' is not HISTORIES or HISTORIESxSCHEDULES, both from 1 to {}", text,
                     kMostHistories);
}

CrashPoints points_of(const CrashArguments& arguments) {
  return arguments.points ? read_points(*arguments.points).value() : CrashPoints{};
}

Fails fails_of(const CrashArguments& arguments) {
  return arguments.fails ? read_fails(*arguments.fails).value() : Fails{};
}

explore::Failures one_failure_of(const CrashArguments& arguments) {
  const Fails fails = fails_of(arguments);
  if (fails.times > 1) {
    throw UsageError(
        "crash: --fails power,power is for schedules of a system (--strategy); here one failure "
        "happens");
  }
  if (fails.what.kind != explore::FailureKind::power && arguments.images) {
    throw UsageError(
        fmt::format("crash: --images is for power failures; with --fails {} there is one image at "
                    "a crash point",
                    to_string(fails.what.kind)));
  }
  return fails.what;
}

std::optional<StrategyArgument> strategy_of(const std::string& text) { return read_strategy(text); }

std::string text_of(const services::SequenceKind& kind) {
  return kind.at_once ? std::string(kPairs) : fmt::format("{}:{}", kSequences, kind.length);
}

std::optional<StrategyArgument> strategy_of(const CrashArguments& arguments) {
  return arguments.strategy ? strategy_of(*arguments.strategy) : std::nullopt;
}

HistoriesArgument histories_of(const CrashArguments& arguments) {
  return arguments.histories ? read_histories(*arguments.histories).value() : HistoriesArgument{};
}

std::uint64_t images_of(const CrashArguments& arguments, std::uint64_t usual) {
  if (!arguments.images) return usual;
  return number_in(*arguments.images).value_or(0);
}

void check_diagram(const CrashArguments& arguments) {
  if (!arguments.diagram) return;
  const std::string problem = harness::problem_with_output_file(*arguments.diagram);
  if (problem.empty()) return;
  throw UsageError(fmt::format("crash: --diagram {}: {}", *arguments.diagram, problem));
}

void check_folder(const CrashArguments& arguments) {
  if (!arguments.folder) return;
  const std::string problem = harness::problem_with_output_folder(*arguments.folder);
  if (problem.empty()) return;
  throw UsageError(fmt::format("crash: --out {}: {}", *arguments.folder, problem));
}

std::optional<std::filesystem::path> write_found(
    const CrashArguments& arguments,
    const std::function<std::filesystem::path(const std::filesystem::path&)>& write,
    std::string& problem) {
  constexpr std::string_view kUsualFolder = "out/crash";
  if (arguments.folder) return write(*arguments.folder);
  problem = harness::problem_with_output_folder(std::string(kUsualFolder));
  if (!problem.empty()) {
    problem = fmt::format("no file: {}: {}; give another folder with --out", kUsualFolder, problem);
    return std::nullopt;
  }
  return write(kUsualFolder);
}

std::string text_of_found(
    const CrashArguments& arguments,
    const std::function<std::filesystem::path(const std::filesystem::path&)>& write) {
  std::string problem;
  const auto file = write_found(arguments, write, problem);
  return file ? text_of_file(*file) : problem;
}

std::string profile_name(const CrashArguments& arguments) {
  return arguments.profile.value_or(std::string(kUsualCrashProfile));
}

sim::Profile crash_profile(const CrashArguments& arguments, const CommandContext& context) {
  return profile_named(profile_name(arguments), "--profile", context);
}

namespace {

// A value as it is written on the command line, of the type that the parameter is declared with.
std::optional<ParameterValue> read_value(const Parameter& parameter, const std::string& text) {
  if (std::holds_alternative<OneOf>(parameter.type) ||
      std::holds_alternative<Name>(parameter.type)) {
    return ParameterValue(text);
  }
  if (text == "true" || text == "false") return ParameterValue(text == "true");
  if (const auto number = number_in(text)) return ParameterValue(*number);
  const char* const end = text.data() + text.size();
  double real = 0;
  if (const auto read = std::from_chars(text.data(), end, real);
      read.ec == std::errc() && read.ptr == end) {
    return ParameterValue(real);
  }
  return std::nullopt;
}

}  // namespace

GivenParameters given_parameters(const services::SystemInfo& system,
                                 const CrashArguments& arguments) {
  return parameters_in(system, arguments.parameters, "crash: --parameter");
}

GivenParameters parameters_in(const services::SystemInfo& system,
                              const std::vector<std::string>& texts, std::string_view source) {
  GivenParameters parameters;
  for (const std::string& text : texts) {
    const auto refuse = [&](std::string_view why) {
      throw UsageError(fmt::format("{} {}: {}", source, text, why));
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

}  // namespace perdura::program
