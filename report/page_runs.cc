// The part of the page that lists what was run.
#include <fmt/format.h>

#include <set>

#include "report/page_data.h"

namespace perdura::report {

Data runs_data(const Section& section, const Folders& folders) {
  DataList runs;
  std::set<std::string> versions;
  for (const ResultFolder& folder : folders) {
    std::size_t all = 0;
    std::size_t valid = 0;
    for (std::size_t row = 0; row < folder.points.size(); ++row) {
      // Each point is counted once, by its row for all operations.
      if (origin_of(folder.points, row) != section.origin) continue;
      if (folder.points.text(row, "operation") != "all") continue;
      ++all;
      if (folder.points.valid(row)) ++valid;
    }
    if (all == 0) continue;
    const std::string unfinished = folder.unfinished();
    Data run;
    run["run"] = folder.name;
    run["how_many"] = unfinished.empty() ? count_of(all, "point") : "unfinished: " + unfinished;
    if (valid < all) run["not_valid"] = fmt::to_string(all - valid);
    run["next"] = !runs.empty();
    runs.push_back(std::move(run));
    const std::string version = folder.from_manifest("version");
    versions.insert(version.empty() ? "of unknown version" : version);
  }
  Data data;
  data["list"] = runs;
  data["versions"] = fmt::format("{}", fmt::join(versions, ", "));
  return data;
}

}  // namespace perdura::report
