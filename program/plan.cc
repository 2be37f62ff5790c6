// perdura plan: prints the points of a sweep, what it needs and how long it will take, without
// running anything.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "harness/run/estimate.h"
#include "harness/text/atomic_file.h"
#include "harness/text/counted.h"
#include "harness/text/output_place.h"
#include "platform/base/error.h"
#include "platform/base/json.h"
#include "program/commands.h"
#include "program/experiment_options.h"

namespace perdura::program {
namespace {

struct PlanArguments {
  ExperimentOptions experiment;
  std::string like;
  std::string hostfile;
  bool as_json = false;
};

// The numbers of ranks with which the sweep can be launched.
struct Launch {
  std::vector<std::uint64_t> allowed_ranks{};  // empty if any number is allowed
  std::string text{};
};

Launch launch_of(const harness::PreparedSweep& sweep) {
  if (!sweep.platforms->collective()) {
    return {{}, "any number; the ranks share the points"};
  }
  const harness::Point& point = sweep.points.front();
  const auto nodes_of = [&](NodeId available) {
    return sweep.driver->roles(point.settings, available).node_count();
  };
  constexpr NodeId kFew = 2;
  const NodeId nodes = nodes_of(kFew);
  if (nodes != nodes_of(kFew + 1)) {
    return {{},
            "one process for all nodes, or 2 and more: a node each (set client_nodes for a fixed "
            "number)"};
  }
  return {{1, nodes},
          fmt::format("one process for all nodes, or {}: {}", nodes, point.roles.to_text())};
}

std::string duration(double seconds) {
  if (seconds < 100) return fmt::format("{:.2g} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

// Ranks that run different points share the time that one process would take.
std::string expected_text(const harness::PreparedSweep& sweep,
                          const std::optional<harness::PastRun>& past,
                          const harness::Estimate& expected) {
  if (!past) {
    return fmt::format(
        "not known: no results of {} on {} in out/ tell the time; name some with --like DIR",
        sweep.experiment.name, sweep.platforms->name());
  }
  const std::size_t of_others = sweep.points.size() - expected.of_same_point;
  const std::string rest =
      of_others == 0 ? ""
                     : fmt::format("; {} of {} not run there and estimated by operations",
                                   of_others, harness::counted(sweep.points.size(), "point"));
  return fmt::format("{}{}, as in {}{}", duration(expected.total),
                     sweep.platforms->collective() ? "" : " of one process", past->folder.string(),
                     rest);
}

// The memory of the point that needs the most.
std::string memory_needed(const harness::PreparedSweep& sweep) {
  const auto most = std::max_element(sweep.memory.begin(), sweep.memory.end());
  if (most == sweep.memory.end() || !*most) return "not known";
  const std::string available =
      sweep.available_memory ? fmt::format("; {} has {}", sweep.available_memory->of,
                                           harness::memory_text(sweep.available_memory->bytes))
                             : "";
  return fmt::format("about {}, in point {}{}", harness::memory_text(**most),
                     most - sweep.memory.begin() + 1, available);
}

void print(const harness::PreparedSweep& sweep, const std::optional<harness::PastRun>& past,
           const harness::Estimate& expected) {
  const Launch launch = launch_of(sweep);
  fmt::print("{}: {} on {} ({}, {})\n", sweep.experiment.name,
             harness::counted(sweep.points.size(), "point"), sweep.platforms->name(),
             sweep.platforms->profile_name(),
             sweep.platforms->modelled() ? "modelled" : "measured");
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const harness::Point& point = sweep.points[i];
    fmt::print("{:>6}  {}, {}\n", i + 1, point.label,
               harness::counted(point.operations, "operation"));
  }
  const auto [fewest, most] =
      std::minmax_element(sweep.points.begin(), sweep.points.end(),
                          [](const harness::Point& one, const harness::Point& other) {
                            return one.roles.node_count() < other.roles.node_count();
                          });
  fmt::print("nodes     {}: {}\n", most->roles.node_count(), most->roles.to_text());
  if (fewest->roles.node_count() != most->roles.node_count()) {
    fmt::print("          fewest {}: {}\n", fewest->roles.node_count(), fewest->roles.to_text());
  }
  fmt::print("ranks     {}\n", launch.text);
  if (sweep.platforms->modelled()) fmt::print("memory    {}\n", memory_needed(sweep));
  fmt::print("expected  {}\n", expected_text(sweep, past, expected));
}

void print_json(const harness::PreparedSweep& sweep, const std::optional<harness::PastRun>& past,
                const harness::Estimate& expected) {
  const Launch launch = launch_of(sweep);
  Json points = Json::array();
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const harness::Point& point = sweep.points[i];
    points.push_back({{"number", i + 1},
                      {"label", point.label},
                      {"operations", point.operations},
                      {"nodes", point.roles.node_count()},
                      {"seed", point.seed},
                      {"repetition", point.repetition}});
    const bool has_memory = i < sweep.memory.size() && sweep.memory[i];
    points.back()["memory_bytes"] = has_memory ? Json(*sweep.memory[i]) : Json();
    points.back()["expected_s"] = past ? Json(expected.seconds[i]) : Json();
  }
  Json json{{"experiment", sweep.experiment.name},
            {"platform", sweep.platforms->name()},
            {"provenance", sweep.platforms->modelled() ? "modelled" : "measured"},
            {"profile", sweep.platforms->profile_name()},
            {"ranks",
             {{"allowed", launch.allowed_ranks.empty() ? Json() : Json(launch.allowed_ranks)},
              {"share_points", !sweep.platforms->collective()}}}};
  json["memory_available_bytes"] =
      sweep.available_memory ? Json(sweep.available_memory->bytes) : Json();
  json["expected_s"] = past ? Json(expected.total) : Json();
  json["expected_like"] = past ? Json(past->folder.string()) : Json();
  json["points_not_run_there"] = past ? Json(sweep.points.size() - expected.of_same_point) : Json();
  json["points"] = std::move(points);
  fmt::print("{}\n", json.dump(2));
}

harness::ExitCode plan(const PlanArguments& arguments, CommandContext& context) {
  if (!arguments.hostfile.empty()) {
    const std::string problem = harness::problem_with_output_file(arguments.hostfile);
    if (!problem.empty()) {
      throw UsageError(fmt::format("--hostfile {}: {}", arguments.hostfile, problem));
    }
  }
  harness::ExperimentRequest request = arguments.experiment.request();
  request.plan_only = true;
  const harness::PreparedSweep sweep =
      prepare_sweep(request, context.locations, all_drivers(), context.ranks);
  if (!context.ranks.is_root()) return harness::ExitCode::done;
  if (!arguments.hostfile.empty())
    harness::write_atomically(arguments.hostfile, hostfile(sweep.site, sweep.points.front().roles));
  const std::optional<harness::PastRun> past =
      arguments.like.empty()
          ? find_past_run("out", sweep.experiment, std::string(sweep.platforms->name()))
          : read_past_run(arguments.like, sweep.experiment);
  const harness::Estimate expected = past ? estimate(sweep.points, *past) : harness::Estimate{};
  if (arguments.as_json) {
    print_json(sweep, past, expected);
  } else {
    print(sweep, past, expected);
  }
  return harness::ExitCode::done;
}

}  // namespace

void add_plan(harness::Command& program, CommandContext& context) {
  const auto arguments = std::make_shared<PlanArguments>();
  harness::Command& command = program.subcommand(
      "plan", "Lists the points of an experiment, the ranks they need and the expected time");
  arguments->experiment.add_to(command).required();
  command.option("--like", arguments->like,
                 "Result folder to estimate the time from (default: the experiment's last one in "
                 "out/)");
  command.option("--hostfile", arguments->hostfile,
                 "Also writes the hosts of the site to this file, for mpirun --hostfile");
  command.flag("--json", arguments->as_json, "Writes JSON");
  command.does([arguments, &context] { return plan(*arguments, context); });
}

}  // namespace perdura::program
