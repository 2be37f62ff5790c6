// The parameters of an experiment's `[systems.nova]`.
#pragma once

#include <array>
#include <cstdint>

#include "platform/base/parameter.h"
#include "services/fs/fs.h"
#include "systems/nova/layout.h"

namespace perdura::systems::nova {

inline constexpr std::array kParameters = std::to_array<Parameter>({
    {.name = "inodes",
     .type = Count{16, std::uint64_t{1} << 31},
     .what = "that there can be; if not given, one for each 8 KiB (when it is made)"},
    {.name = "log_page_bytes",
     .type = Count{kSmallestLogPage, kBlock},
     .usual = kBlock,
     .unit = "bytes",
     .what = "bytes of each log page that are used (set when it is made)"},
    {.name = "gc_pages",
     .type = Count{1, 1 << 20},
     .usual = 4,
     .what = "log pages from which on garbage is collected thoroughly"},
    {.name = "cached_inodes",
     .type = Count{1, std::uint64_t{1} << 31},
     .usual = 1 << 17,
     .what = "that are kept in DRAM, with their names or blocks, besides those that are held"},
});

struct Parameters {
  std::uint64_t inodes = 0;
  Bytes log_page_bytes = 0;
  std::uint64_t gc_pages = 0;
  std::uint64_t cached_inodes = 0;
  // For so long, nothing that was freed is used again: others may still be reading it. 0: at once.
  Picoseconds free_delay{};

  // Throws UsageError if the configuration has unknown parameters or impossible values.
  static Parameters of(const fs::FsConfig& config);
};

}  // namespace perdura::systems::nova
