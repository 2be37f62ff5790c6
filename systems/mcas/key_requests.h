// Requests for the keys of an open pool: puts, gets, erases, and searches in its index.
//
// Several puts share a fence: a put that is flushed is durable only after the next drain(), and
// whoever executes puts must call that before any of them is answered.
#pragma once

#include <memory>
#include <optional>

#include "systems/mcas/growth.h"
#include "systems/mcas/job.h"
#include "systems/mcas/shard_sessions.h"

namespace perdura::systems::mcas {

// The mode in which a request locks its key.
inline LockMode mode_of(const ParsedRequest& request) {
  return request.changes() ? LockMode::exclusive : LockMode::shared;
}

class KeyRequests {
 public:
  // All must outlive this.
  KeyRequests(Pools& pools, Growth& growth, ShardSessions& sessions,
              objects::ShardStatistics& statistics)
      : pools_(pools), growth_(growth), sessions_(sessions), statistics_(statistics) {}

  // Executes a put, a get or an erase whose key is not locked. Returns nothing if the pool must
  // grow first; the caller then repeats the call. The caller of a put must call drain() and then
  // note_space() of the pool.
  std::optional<JobOutcome> execute(const Job& job);
  // The same when the key is not locked anymore; the outcome is durable.
  Task<JobOutcome> execute_when_unlocked(const Job& job);
  // Puts this value instead of the request's. The outcome is durable.
  Task<JobOutcome> put(const Job& job, Value value);

  // The length of a value.
  JobOutcome attributes(const Job& job) const;
  // Returns nothing if the search continues as a task, which keeps the shard alive and answers.
  std::optional<JobOutcome> find(const Job& job, std::shared_ptr<const void> shard);

  // True if everything that was put is durable.
  bool is_drained() const { return drained_; }
  void drain();

  // The outcome of a put that is durable.
  static JobOutcome outcome_of(Pool& pool, Key key, PutOutcome outcome);

 private:
  std::optional<JobOutcome> put_at_once(const Job& job, Value value);
  JobOutcome get(const Job& job);
  JobOutcome erase(const Job& job);
  Task<> find_further(Job job, std::uint64_t position, Keeper keeper);
  JobOutcome found(const Job& job, const index::FindResult& result) const;

  Pools& pools_;
  Growth& growth_;
  ShardSessions& sessions_;
  objects::ShardStatistics& statistics_;
  bool drained_ = true;
};

}  // namespace perdura::systems::mcas
