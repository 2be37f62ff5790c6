#include "harness/run/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/text/whole_file.h"
#include "platform/base/error.h"

namespace perdura::harness {
namespace {

std::vector<PreparedSweep::File> files_of(const std::vector<Point>& points) {
  std::vector<PreparedSweep::File> files;
  std::set<std::pair<std::string, std::string>> seen;
  for (const Point& point : points) {
    for (const PointFile& file : point.files) {
      if (!seen.emplace(file.kind, file.name_in_results).second) continue;
      files.push_back({{file.name_in_results, read_if_there(file.file), file.settings}, file.kind});
    }
  }
  return files;
}

// The number of ranks on this rank's host, including this rank.
std::size_t ranks_here(const Ranks& ranks) {
  const auto& hosts = ranks.hosts();
  if (hosts.empty()) return 1;
  return static_cast<std::size_t>(
      std::count(hosts.begin(), hosts.end(), hosts[static_cast<std::size_t>(ranks.rank())]));
}

// Compares the memory that the points need with what is available: beyond that, the kernel would
// kill this process or others. Checked on models only, where one process runs all nodes of a point
// and ranks run different points.
void check_memory(PreparedSweep& sweep, const Ranks& ranks) {
  if (!sweep.platforms->modelled()) return;
  sweep.available_memory = available_memory();
  const std::size_t processes = ranks_here(ranks);
  for (const Point& point : sweep.points) {
    const std::optional<Bytes> needed = sweep.driver->memory(point);
    sweep.memory.push_back(needed);
    if (!needed || !sweep.available_memory) continue;
    if (*needed <= sweep.available_memory->bytes / processes) continue;
    throw UsageError(
        fmt::format("{}: {}: needs about {} of memory{}, and {} has {} left; lower {}{}",
                    sweep.experiment.file, point.label, memory_text(*needed),
                    processes > 1 ? fmt::format(" in each of {} ranks", processes) : "",
                    sweep.available_memory->of, memory_text(sweep.available_memory->bytes),
                    sweep.driver->takes_memory(), processes > 1 ? ", or take fewer ranks" : ""));
  }
}

// Skips a point whose roles are those of the previous one, as most are.
void check_machine(const PreparedSweep& sweep) {
  std::string checked;
  for (const Point& point : sweep.points) {
    std::string roles = point.roles.to_text();
    if (roles != checked) sweep.platforms->check_machine(point.roles);
    checked = std::move(roles);
  }
  // The largest one tells of the most that is ever needed.
  const Point* largest = nullptr;
  Bytes most = 0;
  for (const Point& point : sweep.points) {
    const Bytes needed = sweep.driver->persistent_memory(point).value_or(0);
    if (needed <= most) continue;
    most = needed;
    largest = &point;
  }
  if (largest != nullptr) sweep.platforms->check_room(most, largest->label);
}

PreparedSweep prepare_here(const ExperimentRequest& request, const Locations& locations,
                           std::span<const Driver* const> drivers, Ranks& ranks) {
  PreparedSweep sweep;
  if (!request.site.empty()) {
    sweep.site = load_site(locations.find(FileKind::site, {request.site, "--site"}));
  }
  const auto file = locations.find(FileKind::experiment, {request.experiment, ""});
  sweep.experiment = load_experiment(file, declarations_of(drivers), request.overrides);
  locations.check_plots(sweep.experiment);
  apply_site(sweep.site, sweep.experiment);
  sweep.driver = *std::find_if(drivers.begin(), drivers.end(), [&](const Driver* driver) {
    return driver->name() == sweep.experiment.declared.name;
  });
  sweep.driver->check_platform(sweep.experiment.platform.text, sweep.experiment.platform.where);
  sweep.platforms = create_platform_factory(sweep.experiment, locations, ranks, sweep.site);
  sweep.points = plan_points(sweep.experiment, locations, *sweep.driver, sweep.platforms->nodes());
  for (Point& point : sweep.points) {
    sweep.driver->check_platform_of(point, sweep.experiment.platform.text,
                                    sweep.experiment.platform.where);
    check_roles(sweep.site, point.roles);
    check_hosts_of_ranks(sweep.site, point.roles, ranks.hosts());
    sweep.platforms->check_nodes(point.roles);
    point.testbed = sweep.platforms->testbed();
  }
  if (!request.plan_only) check_machine(sweep);
  check_memory(sweep, ranks);
  sweep.files = files_of(sweep.points);
  return sweep;
}

// Describes the first rank that cannot go on, or whose configuration differs from the root's;
// returns "" if there is none.
std::string problem_of(Ranks& ranks, const std::vector<std::string>& problems,
                       const std::vector<std::string>& identities) {
  for (std::size_t rank = 0; rank < problems.size(); ++rank) {
    if (problems[rank].empty()) continue;
    if (rank == 0) return problems[rank];
    return fmt::format("{}: {}", ranks.describe(static_cast<int>(rank)), problems[rank]);
  }
  for (std::size_t rank = 1; rank < identities.size(); ++rank) {
    const auto difference = first_difference(identity_of_text(identities[0], "rank 0"),
                                             identity_of_text(identities[rank], "another rank"));
    if (!difference) continue;
    return fmt::format("{} has {}, {} has {}; give all ranks the same arguments, files and build",
                       ranks.describe(0), difference->one, ranks.describe(static_cast<int>(rank)),
                       difference->other);
  }
  return "";
}

}  // namespace

Identity identity_of(const PreparedSweep& sweep) {
  // The build comes first, since another build may interpret the same texts differently.
  Identity identity{
      {"build", build_name()},
      {"experiment", sweep.experiment.text},
      {"site", sweep.site.text},
      {"profile " + sweep.platforms->profile_name(), sweep.platforms->profile_text()}};
  for (const PreparedSweep::File& file : sweep.files) {
    identity.emplace_back(fmt::format("{} {}", file.kind, file.name), file.text);
  }
  return identity_of_text(to_text(identity), "this configuration");
}

PreparedSweep prepare_sweep(const ExperimentRequest& request, const Locations& locations,
                            std::span<const Driver* const> drivers, Ranks& ranks) {
  // Hosts may differ in their files and cores, so each rank collects its problem instead of
  // throwing, which would leave the others waiting.
  PreparedSweep sweep;
  std::string problem;
  std::string identity;
  try {
    sweep = prepare_here(request, locations, drivers, ranks);
    identity = to_text(identity_of(sweep));
  } catch (const UsageError& error) {
    problem = error.what();
  }
  const auto problems = ranks.gather_text(problem);
  const auto identities = ranks.gather_text(identity);
  const std::string found = problem_of(ranks, problems, identities);  // non-empty only at the root
  if (ranks.broadcast(found.empty() ? 1 : 0) == 1) {
    if (ranks.is_root()) {
      for (const std::string& remark : sweep.driver->remarks(sweep.points)) {
        fmt::print(stderr, "perdura: {}\n", remark);
      }
    }
    return sweep;
  }
  throw UsageError(ranks.is_root() ? found : "another rank cannot go on");
}

}  // namespace perdura::harness
