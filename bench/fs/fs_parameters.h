// The parameters of points of file systems (experiments/README.md), and those that each workload
// takes. These tables are their only lists.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "platform/base/parameter.h"

namespace perdura::bench {

std::span<const Parameter> fs_parameters();

// A workload: its name, the parameters that have an effect on it, and their values if the point
// does not set them.
struct FileWorkloadEntry {
  struct Usual {
    std::string_view parameter;
    std::uint64_t value;
  };
  std::string_view name;
  std::string_view what;  // a phrase
  std::uint64_t threads;  // unless the point sets it
  std::span<const Usual> takes;
  // The number of operations of the warm-up for each file that may exist, unless the point sets
  // `warmup`.
  std::uint64_t warmup_per_file = 0;
};
std::span<const FileWorkloadEntry> file_workloads();
// Finds a workload by name; throws std::logic_error for an unknown name.
const FileWorkloadEntry& file_workload(std::string_view name);
// The parameters that only some workloads take.
std::span<const std::string_view> parameters_of_workloads();
// The parameters of file systems that have servers.
std::span<const std::string_view> parameters_of_clusters();

}  // namespace perdura::bench
