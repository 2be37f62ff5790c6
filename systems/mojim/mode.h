// Mojim's modes, and the two existing schemes with which it is compared (Table 3.1): where sync
// points are copied, whether the application waits for that, and whether the primary flushes its
// caches.
#pragma once

#include <cstdint>
#include <string_view>

namespace perdura::systems::mojim {

// The nodes that have copies, and how sync points get there.
enum class Copies : std::uint8_t {
  none,       // nobody but the primary
  mirror,     // the mirror
  two_tiers,  // the mirror, which copies to the backups in the background
  chain,      // each node copies to the next one, and acknowledges when that one has
  broadcast,  // the primary copies to all
};

struct Mode {
  std::string_view name;   // the system's name: "m-sync"
  std::string_view title;  // its name in the paper: "M-sync"
  Copies copies = Copies::mirror;
  // The application waits until its sync point has arrived: at the mirror, or with `chain` and
  // `broadcast` everywhere.
  bool waits = true;
  // Sync points are durable on the primary, too.
  bool flushes = false;
  // The mirror copies to the backups over TCP instead of the RDMA device (M-syncseceth).
  bool backups_over_tcp = false;
  // The mirror's data area is on a disk (M-syncdisk).
  bool data_on_disk = false;

  bool is_replicated() const { return copies != Copies::none; }
};

}  // namespace perdura::systems::mojim
