// The other members of a shard's cluster, as reported to the shard, and the events of which it
// tells its active data objects (MCAS, section 5).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "services/objects/objects.h"
#include "systems/mcas/ado/messages.h"

namespace perdura::systems::mcas {

class Members {
 public:
  // Records an event, and returns it in the plugins' form: the message is the number of the life.
  ado::ClusterEvent note(const objects::MemberEvent& event);
  // For a process that has heard of no events yet: one join for each current member.
  std::vector<ado::ClusterEvent> joins() const;

 private:
  std::map<std::string, std::uint64_t> there_;  // each member's life
};

}  // namespace perdura::systems::mcas
