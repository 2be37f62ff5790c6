// Watches members of a cluster by their heartbeats, and tells of what happens to them (MCAS,
// section 5): for the members themselves and for clients.
//
//   Watcher watcher(thread, timing, [](const Event& event) { ... });
//   watcher.add({"left", {0, kClusterPort}});
//
// What is told of one member are lives, one after the other: `joined`, then `left` or `failed`. All
// watchers that hear of a life agree on the order of lives, and a successor's `joined` comes behind
// the end of its predecessor.
//
//   joined  it can be reached
//   left    it has said that it ends
//   failed  nothing has come from it for as long as the patience, or a successor has taken its
//           place. It may live and be out of reach of this watcher; if it is heard again, the same
//           life joins again.
//
// A connection that breaks is no failure: it is made again, and whoever answers lives.
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
  fabric::Address address;  // of its beacon
};

using Event = objects::MemberEvent;
using What = Event::What;
// As a plugin is told it: "JOIN", "LEAVE", "FAIL".
std::string_view to_string(What what);

class Watcher {
 public:
  // Called on the thread, which must outlive this. It may add and remove members.
  using Notify = std::function<void(const Event&)>;

  Watcher(Thread& thread, const Timing& timing, Notify notify);
  // Nothing is told any more.
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // Does nothing if there is one of that name. Another member of a name that was removed is watched
  // anew.
  void add(const Member& member);
  void remove(const std::string& name);
  // Whether the member has joined, and has neither left nor failed.
  bool is_there(const std::string& name) const;

 private:
  class Watched;

  Thread& thread_;
  Timing timing_;
  std::shared_ptr<const Notify> notify_;
  std::map<std::string, std::shared_ptr<Watched>> members_;
};

}  // namespace perdura::systems::mcas::cluster
