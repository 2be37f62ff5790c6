// What a shard does for each kind of request but the direct transfers.
#include <algorithm>

#include "platform/runtime/work.h"
#include "systems/mcas/shard_keeper.h"

namespace perdura::systems::mcas {

namespace {

// Of a session.
constexpr std::size_t kMostHandles = 1024;
constexpr std::uint32_t kIndexBits = 16;
static_assert(kMostHandles <= std::size_t{1} << kIndexBits);

std::string_view name_in(const ParsedRequest& request) {
  return {reinterpret_cast<const char*>(request.key.data()), request.key.size()};
}

LockMode mode_of(const ParsedRequest& request) {
  return request.changes() ? LockMode::exclusive : LockMode::shared;
}

}  // namespace

Task<std::optional<Shard::Outcome>> Shard::execute(Job job) {
  ++statistics_.requests;
  const ParsedRequest& request = job.request;
  if (!request.is_valid(limits_)) co_return tl::unexpected(objects::Error::invalid);
  if (request.has_pool()) {
    const OpenPool* const open = find_handle(*job.session, request.header.pool);
    if (open == nullptr || (open->read_only && request.changes())) {
      co_return tl::unexpected(objects::Error::no_permission);
    }
    job.pool = open->pool;
    if (job.pool->growing) co_await until_grown(*job.pool);
  }
  switch (request.header.kind) {
    case RequestKind::put:
    case RequestKind::get:
    case RequestKind::erase:
      if (job.pool->locks.allows(request.key, mode_of(request))) break;
      Executor::current().spawn(execute_when_unlocked(job, Keeper(*this, job)));
      co_return std::nullopt;
    case RequestKind::put_direct:
    case RequestKind::get_direct:
    case RequestKind::put_direct_offset:
    case RequestKind::get_direct_offset:
      Executor::current().spawn(transfer(job, Keeper(*this, job)));
      co_return std::nullopt;
    case RequestKind::delete_pool:
      Executor::current().spawn(delete_pool(job, Keeper(*this, job)));
      co_return std::nullopt;
    default:
      co_return execute_at_once(job);
  }
  if (request.header.kind == RequestKind::put) co_return co_await put(job);
  co_return request.header.kind == RequestKind::get ? get(job) : erase(job);
}

Shard::Outcome Shard::execute_at_once(const Job& job) {
  switch (job.request.header.kind) {
    case RequestKind::key_attributes:
      return key_attributes(job);
    case RequestKind::pool_attributes:
      return pool_attributes(job);
    case RequestKind::create_pool:
    case RequestKind::open_pool:
      return open_pool(job);
    case RequestKind::close_pool:
      return close_pool(job);
    case RequestKind::statistics:
      return statistics(job);
    default:
      return tl::unexpected(objects::Error::invalid);
  }
}

Task<> Shard::execute_when_unlocked(Job job, [[maybe_unused]] Keeper keeper) {
  const ParsedRequest& request = job.request;
  const KeyLocks::Lock lock = co_await job.pool->locks.lock(request.key, mode_of(request));
  if (job.session->ended) co_return;
  co_await until_grown(*job.pool);
  switch (request.header.kind) {
    case RequestKind::put:
      co_return finish(job, co_await put(job));
    case RequestKind::get:
      co_return finish(job, get(job));
    default:
      co_return finish(job, erase(job));
  }
}

// --- keys ----------------------------------------------------------------------------------------

Task<Shard::Outcome> Shard::put(const Job& job) {
  ++statistics_.puts;
  Pool& pool = *job.pool;
  const ParsedRequest& request = job.request;
  if ((request.header.flags & kNoOverwrite) != 0 && pool.engine->get(request.key)) {
    co_return tl::unexpected(objects::Error::exists);
  }
  for (;;) {
    const PutOutcome outcome = pool.engine->put(request.key, request.value);
    if (outcome != PutOutcome::must_grow) co_return outcome_of(pool, outcome);
    co_await grow(pool);
  }
}

Shard::Outcome Shard::outcome_of(Pool& pool, PutOutcome outcome) {
  pool.note_space();
  if (outcome == PutOutcome::out_of_space) return tl::unexpected(objects::Error::out_of_space);
  return 0;
}

Shard::Outcome Shard::get(const Job& job) {
  ++statistics_.gets;
  const std::optional<Place> value = job.pool->engine->get(job.request.key);
  if (!value) return tl::unexpected(objects::Error::not_found);
  if (value->length > limits_.max_value_size) return tl::unexpected(objects::Error::too_large);
  pools_.region().read_unchanging(value->offset, reply_value(job).first(value->length));
  return value->length;
}

Shard::Outcome Shard::erase(const Job& job) {
  ++statistics_.erases;
  if (!job.pool->engine->erase(job.request.key)) return tl::unexpected(objects::Error::not_found);
  job.pool->note_space();
  return 0;
}

// The length of a value does not change while its key is locked, so this need not wait.
Shard::Outcome Shard::key_attributes(const Job& job) {
  const std::optional<Place> value = job.pool->engine->get(job.request.key);
  if (!value) return tl::unexpected(objects::Error::not_found);
  return reply_with(job, std::uint64_t{value->length});
}

// An engine grows in steps, so that whoever watches the shard, and its other tasks, have their
// turn.
Task<> Shard::grow(Pool& pool) {
  pool.growing = true;
  growing_.store(true, std::memory_order_relaxed);
  do {
    growth_steps_.fetch_add(1, std::memory_order_relaxed);
    co_await yield();
  } while (pool.engine->grow_step());
  growing_.store(false, std::memory_order_relaxed);
  pool.growing = false;
  pool.grown.wake_all();
}

Task<> Shard::until_grown(Pool& pool) {
  while (pool.growing) co_await wait(pool.grown);
}

// --- pools ---------------------------------------------------------------------------------------

Shard::Outcome Shard::open_pool(const Job& job) {
  const ParsedRequest& request = job.request;
  const std::uint8_t flags = request.header.flags;
  const std::string_view name = name_in(request);
  const bool create = request.header.kind == RequestKind::create_pool;
  if (job.session->handles.size() >= kMostHandles)
    return tl::unexpected(objects::Error::out_of_space);
  auto pool = pools_.open(name);
  if (pool) {
    if (create && (flags & kCreateOnly) != 0) return tl::unexpected(objects::Error::exists);
  } else if (create || (flags & kCreateOnDemand) != 0) {
    pool = pools_.create(name, rpc::read_message<PoolSize>(request.value).bytes);
  }
  if (!pool) return tl::unexpected(pool.error());
  return add_handle(job, **pool);
}

Shard::Outcome Shard::add_handle(const Job& job, Pool& pool) {
  std::vector<OpenPool>& handles = job.session->handles;
  auto place = std::find_if(handles.begin(), handles.end(),
                            [](const OpenPool& open) { return open.handle == kNoPool; });
  if (place == handles.end()) place = handles.insert(place, OpenPool{});
  const auto index = static_cast<PoolHandle>(place - handles.begin());
  *place = {++handles_given_ << kIndexBits | index, &pool,
            (job.request.header.flags & kReadOnly) != 0};
  ++pool.users;
  return reply_with(job, place->handle);
}

const Shard::OpenPool* Shard::find_handle(const Session& session, PoolHandle handle) const {
  const std::size_t index = handle & ((PoolHandle{1} << kIndexBits) - 1);
  if (handle == kNoPool || index >= session.handles.size()) return nullptr;
  const OpenPool& open = session.handles[index];
  return open.handle == handle ? &open : nullptr;
}

void Shard::close(OpenPool& open) {
  if (open.handle != kNoPool) --open.pool->users;
  open = {};
}

Shard::Outcome Shard::close_pool(const Job& job) {
  const PoolHandle handle = job.request.header.pool;
  close(job.session->handles[handle & ((PoolHandle{1} << kIndexBits) - 1)]);
  return 0;
}

Task<> Shard::delete_pool(Job job, [[maybe_unused]] Keeper keeper) {
  const auto removed = co_await pools_.remove(name_in(job.request));
  finish(job, removed ? Outcome(0) : tl::unexpected(removed.error()));
}

Shard::Outcome Shard::pool_attributes(const Job& job) {
  const EngineStatistics engine = job.pool->engine->statistics();
  return reply_with(job, objects::PoolAttributes{engine.items, engine.capacity, engine.free});
}

Shard::Outcome Shard::statistics(const Job& job) {
  objects::ShardStatistics now = statistics_;
  now.pools = pools_.count();
  return reply_with(job, now);
}

template <class T>
Shard::Outcome Shard::reply_with(const Job& job, const T& value) {
  rpc::write_message(reply_value(job), value);
  return sizeof value;
}

}  // namespace perdura::systems::mcas
