#include "systems/mcas/pool_requests.h"

namespace perdura::systems::mcas {

JobOutcome PoolRequests::open(const Job& job) {
  const ParsedRequest& request = job.request;
  const std::uint8_t flags = request.header.flags;
  const std::string_view name = text_of(request.key);
  const bool create = request.header.kind == RequestKind::create_pool;
  const auto free = ShardSessions::free_handle(*job.session);
  if (!free) return tl::unexpected(objects::Error::out_of_space);
  auto pool = pools_.open(name);
  if (!pool && pool.error() == objects::Error::failed) {
    return sessions_.explained(job, pool.error().reason);
  }
  if (pool) {
    if (create && (flags & kCreateOnly) != 0) return tl::unexpected(objects::Error::exists);
  } else if (create || (flags & kCreateOnDemand) != 0) {
    pool = pools_.create(name, rpc::read_message<PoolSize>(request.value).bytes);
  }
  if (!pool) return tl::unexpected(pool.error().error);
  return sessions_.reply_with(
      job, sessions_.open(*job.session, *free, **pool, (flags & kReadOnly) != 0));
}

JobOutcome PoolRequests::close(const Job& job) {
  sessions_.close(*job.session, job.request.header.pool);
  return 0;
}

Task<> PoolRequests::remove(Job job, [[maybe_unused]] Keeper keeper) {
  const std::string_view name = text_of(job.request.key);
  // Others may get the pool's memory only when no process has it mapped any more.
  co_await invocations_.end_process_of(name);
  const auto removed = co_await pools_.remove(name);
  sessions_.finish(job, removed ? JobOutcome(0) : tl::unexpected(removed.error().error));
}

JobOutcome PoolRequests::attributes(const Job& job) const {
  const EngineStatistics engine = job.pool->engine->statistics();
  return sessions_.reply_with(job,
                              objects::PoolAttributes{engine.items, engine.capacity, engine.free,
                                                      job.pool->index != nullptr});
}

// The commands are "AddIndex::VolatileTree" and "RemoveIndex::", as the published code names them.
JobOutcome PoolRequests::configure(const Job& job) {
  constexpr std::string_view kAdd = "AddIndex::";
  const std::string_view command = text_of(job.request.key);
  if (command == "RemoveIndex::") {
    pools_.set_index(*job.pool, false);
    return 0;
  }
  if (!command.starts_with(kAdd)) return tl::unexpected(objects::Error::invalid);
  if (command.substr(kAdd.size()) != kIndexName) {
    return tl::unexpected(objects::Error::unsupported);
  }
  pools_.set_index(*job.pool, true);
  return 0;
}

}  // namespace perdura::systems::mcas
