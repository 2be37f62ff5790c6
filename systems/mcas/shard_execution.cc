// The part that executes each kind of request, at once or as a task.
#include "platform/runtime/work.h"
#include "systems/mcas/shard.h"

namespace perdura::systems::mcas {

bool Shard::execute(Taken& taken) {
  Job& job = taken.job;
  const ParsedRequest& request = job.request;
  if (!request.is_valid(sessions_.limits())) {
    taken.outcome = tl::unexpected(Failed(objects::Error::invalid));
    return true;
  }
  if (request.has_pool()) {
    const OpenHandle* const open = ShardSessions::find_handle(*job.session, request.header.pool);
    if (open == nullptr || (open->read_only && request.changes())) {
      taken.outcome = tl::unexpected(Failed(objects::Error::no_permission));
      return true;
    }
    job.pool = open->pool;
    if (!job.pool->damage.empty() && request.header.kind != RequestKind::close_pool) {
      taken.outcome = damaged(job);
      return true;
    }
    if (job.pool->growing) return false;
  }
  try {
    return execute_valid(taken);
  } catch (const DamagedPool& damage) {
    taken.outcome = damaged(job, damage);
    return true;
  }
}

bool Shard::execute_valid(Taken& taken) {
  Job& job = taken.job;
  const ParsedRequest& request = job.request;
  switch (request.header.kind) {
    case RequestKind::put:
    case RequestKind::get:
    case RequestKind::erase:
      if (job.pool->locks.allows(request.key, mode_of(request))) break;
      Executor::current().spawn(execute_when_unlocked(job, keeper_of(job)));
      return true;
    case RequestKind::put_direct:
    case RequestKind::get_direct:
    case RequestKind::put_direct_offset:
    case RequestKind::get_direct_offset:
      Executor::current().spawn(transfer(job, keeper_of(job)));
      return true;
    case RequestKind::invoke:
    case RequestKind::invoke_put:
      Executor::current().spawn(invoke(job, keeper_of(job)));
      return true;
    case RequestKind::delete_pool:
      Executor::current().spawn(pool_requests_.remove(job, keeper_of(job)));
      return true;
    case RequestKind::find:
      taken.outcome = keys_.find(job, shared_from_this());
      return true;
    default:
      taken.outcome = execute_at_once(job);
      return true;
  }
  taken.outcome = keys_.execute(job);
  return taken.outcome.has_value();
}

JobOutcome Shard::execute_at_once(const Job& job) {
  switch (job.request.header.kind) {
    case RequestKind::key_attributes:
      return keys_.attributes(job);
    case RequestKind::pool_attributes:
      return pool_requests_.attributes(job);
    case RequestKind::create_pool:
    case RequestKind::open_pool:
      return pool_requests_.open(job);
    case RequestKind::close_pool:
      return pool_requests_.close(job);
    case RequestKind::configure_pool:
      return pool_requests_.configure(job);
    case RequestKind::statistics:
      return statistics(job);
    default:
      return tl::unexpected(objects::Error::invalid);
  }
}

Task<> Shard::execute_when_unlocked(Job job, [[maybe_unused]] Keeper keeper) {
  JobOutcome outcome = 0;
  try {
    outcome = co_await keys_.execute_when_unlocked(job);
  } catch (const DamagedPool& damage) {
    outcome = damaged(job, damage);
  }
  conclude(job, outcome);
}

Task<> Shard::transfer(Job job, [[maybe_unused]] Keeper keeper) {
  ++statistics_.direct_transfers;
  JobOutcome outcome = 0;
  try {
    outcome = co_await transfers_.execute(job);
  } catch (const DamagedPool& damage) {
    outcome = damaged(job, damage);
  }
  conclude(job, outcome);
}

Task<> Shard::invoke(Job job, [[maybe_unused]] Keeper keeper) {
  ++statistics_.invocations;
  JobOutcome outcome = 0;
  try {
    outcome = co_await invocations_.execute(job);
  } catch (const DamagedPool& damage) {
    outcome = damaged(job, damage);
  }
  sessions_.finish(job, outcome);
}

JobOutcome Shard::damaged(const Job& job, const DamagedPool& damage) {
  pools_.close_damaged(*job.pool, damage);
  return damaged(job);
}

JobOutcome Shard::statistics(const Job& job) const {
  objects::ShardStatistics now = statistics_;
  now.pools = pools_.count();
  return sessions_.reply_with(job, now);
}

}  // namespace perdura::systems::mcas
