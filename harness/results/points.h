// The rows of points.csv, histograms.csv and timeline.csv (docs/results.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/results/measurement.h"
#include "harness/schema/schema.h"

namespace perdura::harness {

// What a row was measured with: the columns before `operation`.
struct PointIdentity {
  std::string experiment{};
  std::string platform{};
  bool modelled = false;
  std::string profile{};
  std::string system{};
  std::string workload{};
  std::uint64_t key_size = 0;
  std::uint64_t value_size = 0;
  std::uint64_t records = 0;
  std::uint64_t clients = 0;
  std::uint64_t queue_depth = 0;
  std::uint64_t server_threads = 0;
  std::optional<std::uint64_t> resizes{};  // nothing: as the system says
  std::string load{"closed"};
  std::optional<std::uint64_t> offered_load{};  // of an open loop; operations per second
  std::string domain{};                         // empty: not said; so are the next five
  std::string ddio{};
  std::string receive_buffers{};
  std::string transport{};
  std::string update{};
  std::string persistence{};
  std::uint64_t seed = 0;
  std::uint64_t repetition = 0;
  pmem::WriteMeter::Level accounting = pmem::WriteMeter::Level::issued;
};

struct PointResult {
  PointIdentity identity;
  Measurement measurement;
};

// The files as text; results in the order of the sweep. The same results yield the same bytes:
// numbers are written as the shortest decimal that reads back as the same double.
// `schema`: the columns of points.csv.
std::string points_csv(const std::vector<const PointResult*>& results,
                       const report::Schema& schema = {});
std::string histograms_csv(const std::vector<const PointResult*>& results);
// Empty if nothing was recorded over time.
std::string timeline_csv(const std::vector<const PointResult*>& results);

}  // namespace perdura::harness
