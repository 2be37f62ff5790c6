// The rows of points.csv, histograms.csv and timeline.csv (docs/results.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/results/measurement.h"
#include "harness/schema/schema.h"

namespace perdura::harness {

// The parameters that a row was measured with: the columns before `operation`, and those that
// drivers declare.
struct PointIdentity {
  std::string experiment{};
  std::string platform{};
  bool modelled = false;
  std::string profile{};
  std::string system{};
  std::map<std::string, std::string, std::less<>>
      parameters{};  // cells, by column; empty: not said
  std::uint64_t seed = 0;
  std::uint64_t repetition = 0;
  pmem::WriteMeter::Level accounting = pmem::WriteMeter::Level::issued;
};

struct PointResult {
  PointIdentity identity;
  Measurement measurement;
};

// The files as text, with results in the order of the sweep. Equal results yield equal bytes:
// numbers are written as the shortest decimal that reads back as the same double. `schema` has the
// columns of points.csv; timeline.csv has those of them that identify points.
std::string points_csv(const std::vector<const PointResult*>& results,
                       const schema::Schema& schema = {});
std::string histograms_csv(const std::vector<const PointResult*>& results);
// Empty if no timeline was recorded.
std::string timeline_csv(const std::vector<const PointResult*>& results,
                         const schema::Schema& schema = {});

}  // namespace perdura::harness
