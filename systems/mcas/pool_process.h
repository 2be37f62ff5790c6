// The process of a pool's active data objects, as the shard uses it (MCAS, section 4.2): started
// with the first work, and there while a client has the pool open.
//
// A process sees just the memory that its pool had when it was launched. If the pool has got more,
// the process ends before the next work, and another one is launched, and likewise if it has died.
// Works wait meanwhile. A launch that fails is tried a few times; then those who wait have failed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "systems/mcas/ado/host.h"
#include "systems/mcas/ado/launcher.h"
#include "systems/mcas/members.h"
#include "systems/mcas/pool_callbacks.h"

namespace perdura::systems::mcas {

class PoolProcess {
 public:
  struct Options {
    std::shared_ptr<ado::Launcher> launcher;
    std::string memory;  // the name of the shard's
    std::vector<std::string> plugins;
    Picoseconds patience{};  // for one work
    std::optional<ado::PeerOptions> peer;
  };

  // For the pools that have this slot of the catalog, one after the other. All must outlive it.
  PoolProcess(Thread& thread, const Pools& pools, Growth& growth, const Parameters& parameters,
              const Options& options, const Members& members, Catalog::SlotNumber slot)
      : thread_(thread),
        pools_(pools),
        options_(options),
        members_(members),
        name_(std::to_string(slot)),
        callbacks_(pools, growth, parameters.max_key_size) {}
  PoolProcess(const PoolProcess&) = delete;
  PoolProcess& operator=(const PoolProcess&) = delete;
  ~PoolProcess();

  // The callbacks for this pool, by which the caller prepares a work.
  PoolCallbacks& of(Pool& pool) {
    callbacks_.use(pool);
    return callbacks_;
  }
  // Executes a work, for which of() has been called. Its key is locked by hold() in
  // this mode, and is not any more when this returns. `failed` if no process can be launched.
  Task<ado::CompletionMessage> work(ado::WorkMessage order, ado::LockMode mode);

  // Tells a process that runs. One that is launched later is told of the members that there are by
  // then.
  void cluster_event(const ado::ClusterEvent& event) {
    if (host_) host_->cluster_event(event);
  }

  // Whether there is a process that nobody needs.
  bool is_idle() const { return running_->launched != nullptr && callbacks_.pool().users == 0; }
  // Ends it unless somebody has come to need it.
  Task<> stop();

 private:
  class Change;
  // The process, which tasks of the host may end when this object is gone.
  struct Running {
    std::unique_ptr<ado::Launched> launched;
    std::string title;  // whose it is, in lines of the shard's log
    void end();
    void say(const std::string& what) const;
  };
  // Whether there is a process that sees all of the pool.
  bool is_current() const;
  // False if there cannot be one.
  Task<bool> launch_if_needed();
  Task<std::string> launch();
  Task<> end();

  Thread& thread_;
  const Pools& pools_;
  const Options& options_;
  const Members& members_;
  std::string name_;
  PoolCallbacks callbacks_;
  std::shared_ptr<ado::Host> host_;
  std::shared_ptr<Running> running_ = std::make_shared<Running>();
  Bytes shown_ = 0;        // how much of the pool's memory it sees
  bool changing_ = false;  // it is being launched, or ended
  bool failed_ = false;    // the last change was a launch, in vain
  std::string problem_;    // why
  WaitList changed_;
};

}  // namespace perdura::systems::mcas
