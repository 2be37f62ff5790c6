// A node's copy of the region, by its parts: the sync points that arrive, the data area to which
// they are applied, what is known about the copies that they are passed on to, and the durable
// facts that recovery begins with.
#pragma once

#include "systems/mojim/copy_state.h"
#include "systems/mojim/data_area.h"
#include "systems/mojim/following_copies.h"
#include "systems/mojim/receive_logs.h"

namespace perdura::systems::mojim {

struct LocalCopy {
  // Recovers from regions that are not new: finds the sync points that had arrived and not been
  // applied, and applies those before the first gap. Both regions must outlive this.
  LocalCopy(pmem::Region& logs_region, pmem::Region& data_region, const Shape& shape,
            const DataArea::Options& options)
      : state(logs_region),
        logs(logs_region, state, shape, options.flushes),
        followers(state),
        data(data_region, state, logs, followers, options) {}

  CopyState state;
  ReceiveLogs logs;
  FollowingCopies followers;
  DataArea data;
};

}  // namespace perdura::systems::mojim
