// The other members of a shard's cluster, as it has been told of them, and what its active data
// objects are told (MCAS, section 5).
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
  // Returns it as plugins are told it: the message is the number of the life.
  ado::ClusterEvent note(const objects::MemberEvent& event);
  // For who has heard nothing yet: that each member which is there has joined.
  std::vector<ado::ClusterEvent> joins() const;

 private:
  std::map<std::string, std::uint64_t> there_;  // their lives
};

}  // namespace perdura::systems::mcas
