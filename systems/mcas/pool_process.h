// The process of a pool's active data objects, as the shard uses it (MCAS, section 4.2): started by
// the first invocation, and kept while a client has the pool open.
//
// A process has mapped exactly the memory that its pool had when it was launched. If the pool has
// got more since, the process is ended before the next invocation and another one is launched; also
// if it has died. Invocations wait meanwhile. A failed launch is repeated a few times; then the
// waiting invocations fail.
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
    std::string memory;  // the name of the shard's memory
    std::vector<std::string> plugins;
    Picoseconds patience{};  // the time that one invocation may take
    std::optional<ado::PeerOptions> peer;
  };

  // Serves the pools that have this slot of the catalog, one after the other. All arguments must
  // outlive it.
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

  // The callbacks for this pool, with which the caller prepares an invocation.
  PoolCallbacks& of(Pool& pool) {
    callbacks_.use(pool);
    return callbacks_;
  }
  // Executes an invocation, after of() has been called for its pool. Its key must have been locked
  // by hold() in this mode, and is unlocked when this returns. `failed` if no process can be
  // launched.
  Task<ado::CompletionMessage> work(ado::WorkMessage order, ado::LockMode mode);

  // Reports the event to a running process. A process that is launched later is told of the members
  // present then.
  void cluster_event(const ado::ClusterEvent& event) {
    if (host_) host_->cluster_event(event);
  }

  // True if there is a process and no one uses the pool.
  bool is_idle() const { return running_->launched != nullptr && callbacks_.pool().users == 0; }
  // Ends the process, unless the pool is in use again.
  Task<> stop();

 private:
  class ChangingMark;
  // The process. Shared with the host, whose tasks may end it after this object is gone.
  struct Running {
    std::unique_ptr<ado::Launched> launched;
    std::string title;  // identifies the process in lines of the shard's log
    void end();
    void say(const std::string& what) const;
  };
  // True if there is a process that has mapped all of the pool.
  bool is_current() const;
  // Returns false if no process can be launched; `problem_` has the reason.
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
  Bytes shown_ = 0;        // bytes of the pool's memory that the process has mapped
  bool changing_ = false;  // the process is being launched or ended
  bool failed_ = false;    // the last change was a launch that failed
  std::string problem_;    // why
  WaitList changed_;
};

}  // namespace perdura::systems::mcas
