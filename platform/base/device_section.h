// The section [verbs] of a file that configures servers and their clients (mcas, file systems over a cluster): which RDMA
// device their processes use, on every host. Each key may be left out.
//
//   [verbs]
//   device = "mlx5_0"
//   port = 1
//   gid_index = 3
//   odp = false         # true: registered memory is not locked
#pragma once

#include <optional>
#include <string>

#include "platform/base/toml_section.h"

namespace perdura {

struct DeviceSection {
  std::string name{};                   // as shown by ibv_devices; empty: one with an active port
  std::optional<unsigned> port{};       // from 1
  std::optional<unsigned> gid_index{};  // as shown by show_gids
  bool on_demand_paging = false;

  // Throws UsageError.
  static DeviceSection read(const TomlSection& section);
};

}  // namespace perdura
