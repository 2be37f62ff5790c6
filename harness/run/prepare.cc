#include "harness/run/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "harness/config/section.h"
#include "platform/error.h"

namespace perdura::harness {
namespace {

const Driver& find_driver(std::span<const Driver* const> drivers, const Located& name) {
  std::vector<std::string_view> known;
  for (const Driver* driver : drivers) {
    if (driver->name() == name.text) return *driver;
    known.push_back(driver->name());
  }
  throw UsageError(fmt::format("{}: unknown driver '{}'; known are: {}", name.where, name.text,
                               join_names(known)));
}

std::vector<std::pair<std::string, std::string>> workload_texts(const std::vector<Point>& points,
                                                                const Locations& locations) {
  std::vector<std::pair<std::string, std::string>> texts;
  std::set<std::string> seen;
  for (const Point& point : points) {
    if (!seen.insert(point.workload_name).second) continue;
    std::ifstream input(locations.find(FileKind::workload, point.settings.workload),
                        std::ios::binary);
    texts.emplace_back(point.workload_name, std::string{std::istreambuf_iterator<char>(input),
                                                        std::istreambuf_iterator<char>()});
  }
  return texts;
}

PreparedSweep prepare_here(const ExperimentRequest& request, const Locations& locations,
                           std::span<const Driver* const> drivers, Ranks& ranks) {
  PreparedSweep sweep;
  if (!request.site.empty()) {
    sweep.site = load_site(locations.find(FileKind::site, {request.site, "--site"}));
  }
  const auto file = locations.find(FileKind::experiment, {request.experiment, ""});
  sweep.experiment = load_experiment(file, request.overrides);
  locations.check_plots(sweep.experiment);
  apply_site(sweep.site, sweep.experiment);
  sweep.driver = &find_driver(drivers, sweep.experiment.driver);
  sweep.platforms = create_platform_factory(sweep.experiment, locations, ranks, sweep.site);
  sweep.points = plan_points(sweep.experiment, locations, *sweep.driver,
                             sweep.platforms->default_client_nodes());
  for (const Point& point : sweep.points) sweep.platforms->check_client_nodes(point.client_nodes);
  sweep.workloads = workload_texts(sweep.points, locations);
  return sweep;
}

}  // namespace

PreparedSweep prepare_sweep(const ExperimentRequest& request, const Locations& locations,
                            std::span<const Driver* const> drivers, Ranks& ranks) {
  // Hosts may differ in their files and cores; one rank that cannot go on must not leave the others
  // waiting.
  PreparedSweep sweep;
  std::string problem;
  try {
    sweep = prepare_here(request, locations, drivers, ranks);
  } catch (const UsageError& error) {
    problem = error.what();
  }
  const auto problems = ranks.gather_text(problem);
  const auto first = std::find_if(problems.begin(), problems.end(),
                                  [](const std::string& text) { return !text.empty(); });
  const bool sound = ranks.broadcast(first == problems.end() ? 1 : 0) == 1;
  if (!sound) throw UsageError(ranks.is_root() ? *first : "another rank cannot go on");
  return sweep;
}

}  // namespace perdura::harness
