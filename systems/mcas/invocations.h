// Active data objects (MCAS, section 4.1): invocations, signals of other operations, and the pools'
// processes. The shard locks the key, creates the value that the invocation needs, and hands the
// invocation to the pool's process. The lock is released when the invocation has ended, however it
// ends.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "systems/mcas/growth.h"
#include "systems/mcas/job.h"
#include "systems/mcas/key_requests.h"
#include "systems/mcas/pool_process.h"
#include "systems/mcas/shard_sessions.h"

namespace perdura::systems::mcas {

class Invocations {
 public:
  // Without a launcher there are no active data objects. All references must outlive this.
  Invocations(Thread& thread, const std::string& name, const Parameters& parameters,
              std::shared_ptr<ado::Launcher> launcher, Pools& pools, Growth& growth,
              KeyRequests& keys, ShardSessions& sessions);

  // True if there are active data objects.
  bool are_possible() const { return !processes_.empty(); }
  // Invokes a plugin; `unsupported` if there are no active data objects.
  Task<JobOutcome> execute(const Job& job);

  // True if plugins have to be told of this operation before it is answered (section 4.1.1).
  bool tells_of(const Job& job, const JobOutcome& outcome) const;
  // Tells them, and then answers.
  Task<> signal(Job job, JobOutcome outcome, Keeper keeper);

  // --- processes ---------------------------------------------------------------------------------

  // Reports the event to all running processes.
  void cluster_event(const objects::MemberEvent& event);
  // Ends the processes of pools that nobody has open, until the task is destroyed. Keeps the shard
  // alive. Must be called only if there are active data objects.
  Task<> end_idle_processes(std::shared_ptr<const void> shard);
  // Ends the process of a pool that nobody has open, if there is one.
  Task<> end_process_of(std::string_view pool);

 private:
  PoolProcess& process_of(const Pool& pool) { return *processes_[pool.slot]; }
  // Creates the value and the detached memory that the invocation needs. Returns the error if that
  // fails.
  Task<std::optional<objects::Error>> prepare(const Job& job, PoolCallbacks& pool,
                                              ado::WorkMessage& order);
  JobOutcome answered(const Job& job, const ado::CompletionMessage& completion) const;
  JobOutcome failed(const Job& job, const ado::CompletionMessage& completion) const;

  Pools& pools_;
  KeyRequests& keys_;
  ShardSessions& sessions_;
  PoolProcess::Options process_options_;
  bool signals_;  // plugins are told of gets, puts and erases, too
  bool consent_;  // a change fails if plugins cannot be told of it or refuse it
  Members members_;
  // The process of each catalog slot; empty without plugins.
  std::vector<std::unique_ptr<PoolProcess>> processes_;
};

}  // namespace perdura::systems::mcas
