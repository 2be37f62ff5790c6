// Watches members of a cluster by their heartbeats, and reports their events (MCAS, section 5): for
// the members themselves and for clients.
//
//   Watcher watcher(thread, timing, [](const Event& event) { ... });
//   watcher.add({"left", {0, kClusterPort}});
//
// The events of one member are its lives, one after the other: `joined`, then `left` or `failed`.
// All watchers that notice a life agree on the order of lives, and a successor's `joined` comes
// after the end of its predecessor.
//
//   joined  the member can be reached
//   left    it has announced that it ends
//   failed  nothing has arrived from it during the patience, or a successor has taken its place.
//           It may be alive and out of reach of this watcher; if it is heard again, the same life
//           joins again.
//
// A broken connection is not a failure: the watcher connects again, and a member that answers is
// alive.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "platform/platform.h"
#include "services/objects/objects.h"
#include "systems/mcas/cluster/messages.h"

namespace perdura::systems::mcas::cluster {

struct Member {
  std::string name;
  fabric::Address address;  // its beacon's
};

using Event = objects::MemberEvent;
using What = Event::What;
// The name of the event for plugins: "JOIN", "LEAVE", "FAIL".
std::string_view to_string(What what);

class Watcher {
 public:
  // Called on the thread, which must outlive the watcher. It may add and remove members.
  using Notify = std::function<void(const Event&)>;

  Watcher(Thread& thread, const Timing& timing, Notify notify);
  // No more events are reported.
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // Does nothing if there is a member of that name. A member may be added again after it was
  // removed; nothing of the old one is kept.
  void add(const Member& member);
  void remove(const std::string& name);
  // True if the member has joined, and has neither left nor failed since.
  bool is_there(const std::string& name) const;

 private:
  class Watched;

  Thread& thread_;
  Timing timing_;
  std::shared_ptr<const Notify> notify_;
  std::map<std::string, std::shared_ptr<Watched>> members_;
};

}  // namespace perdura::systems::mcas::cluster
