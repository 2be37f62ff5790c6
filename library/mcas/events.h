// Converts the events of a cluster for applications.
#pragma once

#include "library/perdura_objects.h"
#include "systems/mcas/cluster/watcher.h"

namespace perdura::mcas {

inline ClusterEvent event_of(const systems::mcas::cluster::Event& event) {
  using systems::mcas::cluster::What;
  static_assert(static_cast<int>(ClusterEvent::What::failed) == static_cast<int>(What::failed));
  return {static_cast<ClusterEvent::What>(event.what), event.member, event.life};
}

}  // namespace perdura::mcas
