#include "systems/mcas/members.h"

#include "systems/mcas/cluster/watcher.h"

namespace perdura::systems::mcas {

namespace {

using What = objects::MemberEvent::What;

ado::ClusterEvent told(What what, const std::string& member, std::uint64_t life) {
  return {member, std::string(cluster::to_string(what)), std::to_string(life)};
}

}  // namespace

ado::ClusterEvent Members::note(const objects::MemberEvent& event) {
  if (event.what == What::joined) {
    there_[event.member] = event.life;
  } else {
    there_.erase(event.member);
  }
  return told(event.what, event.member, event.life);
}

std::vector<ado::ClusterEvent> Members::joins() const {
  std::vector<ado::ClusterEvent> all;
  for (const auto& [member, life] : there_) all.push_back(told(What::joined, member, life));
  return all;
}

}  // namespace perdura::systems::mcas
