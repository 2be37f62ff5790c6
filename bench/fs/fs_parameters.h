// The parameters of points of file systems (experiments/README.md), and which of them each workload
// takes. These tables are the only lists of them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "platform/base/parameter.h"

namespace perdura::bench {

std::span<const Parameter> fs_parameters();
// Of the system `path`: a directory of this machine.
std::span<const Parameter> path_parameters();

// A workload by its name, with the parameters that have an effect on it and what they are if the
// point does not say.
struct FileWorkloadEntry {
  struct Usual {
    std::string_view parameter;
    std::uint64_t value;
  };
  std::string_view name;
  std::string_view what;  // a phrase
  std::uint64_t threads;  // unless the point says
  std::span<const Usual> takes;
  // The operations of the warm-up for each file that there may be, unless the point says how many
  // operations it has.
  std::uint64_t warmup_per_file = 0;
};
std::span<const FileWorkloadEntry> file_workloads();
// One of them; throws std::logic_error for another name.
const FileWorkloadEntry& file_workload(std::string_view name);
// The parameters that only some workloads take.
std::span<const std::string_view> parameters_of_workloads();

}  // namespace perdura::bench
