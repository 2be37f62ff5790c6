// The execution of each kind of request except direct transfers.
#include <algorithm>

#include "platform/runtime/work.h"
#include "systems/mcas/shard_keeper.h"

namespace perdura::systems::mcas {

namespace {

// Limit per session.
constexpr std::size_t kMostHandles = 1024;
constexpr std::uint32_t kIndexBits = 16;
static_assert(kMostHandles <= std::size_t{1} << kIndexBits);

LockMode mode_of(const ParsedRequest& request) {
  return request.changes() ? LockMode::exclusive : LockMode::shared;
}

}  // namespace

bool Shard::execute(Taken& taken) {
  Job& job = taken.job;
  const ParsedRequest& request = job.request;
  if (!request.is_valid(limits_)) {
    taken.outcome = tl::unexpected(Failed(objects::Error::invalid));
    return true;
  }
  if (request.has_pool()) {
    const OpenPool* const open = find_handle(*job.session, request.header.pool);
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
      Executor::current().spawn(execute_when_unlocked(job, Keeper(*this, job)));
      return true;
    case RequestKind::put_direct:
    case RequestKind::get_direct:
    case RequestKind::put_direct_offset:
    case RequestKind::get_direct_offset:
      Executor::current().spawn(transfer(job, Keeper(*this, job)));
      return true;
    case RequestKind::invoke:
    case RequestKind::invoke_put:
      Executor::current().spawn(invoke(job, Keeper(*this, job)));
      return true;
    case RequestKind::delete_pool:
      Executor::current().spawn(delete_pool(job, Keeper(*this, job)));
      return true;
    case RequestKind::find:
      taken.outcome = find(job);
      return true;
    default:
      taken.outcome = execute_at_once(job);
      return true;
  }
  if (request.header.kind == RequestKind::put) {
    taken.outcome = put_at_once(job, request.value);
    return taken.outcome.has_value();
  }
  taken.outcome = request.header.kind == RequestKind::get ? get(job) : erase(job);
  return true;
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
    case RequestKind::configure_pool:
      return configure_pool(job);
    case RequestKind::statistics:
      return statistics(job);
    default:
      return tl::unexpected(objects::Error::invalid);
  }
}

Task<> Shard::execute_when_unlocked(Job job, [[maybe_unused]] Keeper keeper) {
  Outcome outcome = 0;
  try {
    outcome = co_await execute_when_unlocked(job);
  } catch (const DamagedPool& damage) {
    outcome = damaged(job, damage);
  }
  conclude(job, outcome);
}

Task<Shard::Outcome> Shard::execute_when_unlocked(const Job& job) {
  const ParsedRequest& request = job.request;
  const KeyLocks::Lock lock = co_await job.pool->locks.lock(request.key, mode_of(request));
  if (job.session->ended) co_return tl::unexpected(objects::Error::disconnected);
  co_await Growth::until_over(*job.pool);
  switch (request.header.kind) {
    case RequestKind::put:
      co_return co_await put(job, request.value);
    case RequestKind::get:
      co_return get(job);
    default:
      co_return erase(job);
  }
}

Shard::Outcome Shard::damaged(const Job& job, const DamagedPool& damage) {
  pools_.close_damaged(*job.pool, damage);
  return damaged(job);
}

Shard::Outcome Shard::explained(const Job& job, std::string_view reason) const {
  const std::span<std::byte> reply = reply_value(job);
  const Bytes length = std::min<Bytes>(reason.size(), reply.size());
  copy_bytes(reply.first(length), std::as_bytes(std::span(reason)).first(length));
  return tl::unexpected(Failed(objects::Error::failed, length));
}

// --- keys ----------------------------------------------------------------------------------------

std::optional<Shard::Outcome> Shard::put_at_once(const Job& job, Value value) {
  Pool& pool = *job.pool;
  const ParsedRequest& request = job.request;
  Outcome outcome = tl::unexpected(objects::Error::exists);
  if ((request.header.flags & kNoOverwrite) == 0 || !pool.engine->get(request.key)) {
    const PutOutcome put = pool.engine->put_flushed(request.key, value);
    if (put == PutOutcome::must_grow) return std::nullopt;
    if (put == PutOutcome::flushed) {
      drained_ = false;
      pool.add_to_index(request.key);
      outcome = 0;
    } else {
      outcome = outcome_of(pool, request.key, put);
    }
  }
  ++statistics_.puts;
  return outcome;
}

Task<Shard::Outcome> Shard::put(const Job& job, Value value) {
  for (;;) {
    const std::optional<Outcome> outcome = put_at_once(job, value);
    drain();
    job.pool->note_space();
    if (outcome) co_return *outcome;
    co_await growth_.grow(*job.pool);
  }
}

Shard::Outcome Shard::outcome_of(Pool& pool, Key key, PutOutcome outcome) {
  if (outcome == PutOutcome::out_of_space) {
    pool.note_space();
    return tl::unexpected(objects::Error::out_of_space);
  }
  pool.note_put(key);
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
  job.pool->note_erased(job.request.key);
  return 0;
}

// The length of a value does not change while its key is locked, so this need not wait for a lock.
Shard::Outcome Shard::key_attributes(const Job& job) {
  const std::optional<Place> value = job.pool->engine->get(job.request.key);
  if (!value) return tl::unexpected(objects::Error::not_found);
  return reply_with(job, std::uint64_t{value->length});
}

// --- pools ---------------------------------------------------------------------------------------

Shard::Outcome Shard::open_pool(const Job& job) {
  const ParsedRequest& request = job.request;
  const std::uint8_t flags = request.header.flags;
  const std::string_view name = text_of(request.key);
  const bool create = request.header.kind == RequestKind::create_pool;
  const auto free = free_handle(*job.session);
  if (free == kMostHandles) return tl::unexpected(objects::Error::out_of_space);
  auto pool = pools_.open(name);
  if (!pool && pool.error() == objects::Error::failed) {
    return explained(job, pool.error().reason);
  }
  if (pool) {
    if (create && (flags & kCreateOnly) != 0) return tl::unexpected(objects::Error::exists);
  } else if (create || (flags & kCreateOnDemand) != 0) {
    pool = pools_.create(name, rpc::read_message<PoolSize>(request.value).bytes);
  }
  if (!pool) return tl::unexpected(pool.error().error);
  return add_handle(job, free, **pool);
}

// Returns the index of a closed handle of the session or of a new one, or kMostHandles if all are
// open.
std::size_t Shard::free_handle(Session& session) {
  std::vector<OpenPool>& handles = session.handles;
  const auto closed = std::find_if(handles.begin(), handles.end(),
                                   [](const OpenPool& open) { return open.handle == kNoPool; });
  if (closed == handles.end() && handles.size() < kMostHandles) {
    handles.emplace_back();
    return handles.size() - 1;
  }
  return static_cast<std::size_t>(closed - handles.begin());
}

Shard::Outcome Shard::add_handle(const Job& job, std::size_t number, Pool& pool) {
  OpenPool& open = job.session->handles[number];
  open = {++handles_given_ << kIndexBits | number, &pool,
          (job.request.header.flags & kReadOnly) != 0};
  ++pool.users;
  return reply_with(job, open.handle);
}

const Shard::OpenPool* Shard::find_handle(const Session& session, PoolHandle handle) const {
  const std::size_t index = handle & ((PoolHandle{1} << kIndexBits) - 1);
  if (handle == kNoPool || index >= session.handles.size()) return nullptr;
  const OpenPool& open = session.handles[index];
  return open.handle == handle ? &open : nullptr;
}

void Shard::close(OpenPool& open) {
  if (open.handle != kNoPool) leave(*open.pool);
  open = {};
}

Shard::Outcome Shard::close_pool(const Job& job) {
  const PoolHandle handle = job.request.header.pool;
  close(job.session->handles[handle & ((PoolHandle{1} << kIndexBits) - 1)]);
  return 0;
}

Task<> Shard::delete_pool(Job job, [[maybe_unused]] Keeper keeper) {
  const std::string_view name = text_of(job.request.key);
  // Others may get the pool's memory only when no process has it mapped any more.
  while (!processes_.empty()) {
    const Pool* const pool = pools_.opened(name);
    if (pool == nullptr || pool->users > 0 || !process_of(*pool).is_idle()) break;
    co_await process_of(*pool).stop();
  }
  const auto removed = co_await pools_.remove(name);
  finish(job, removed ? Outcome(0) : tl::unexpected(removed.error().error));
}

Shard::Outcome Shard::pool_attributes(const Job& job) {
  const EngineStatistics engine = job.pool->engine->statistics();
  return reply_with(job, objects::PoolAttributes{engine.items, engine.capacity, engine.free,
                                                 job.pool->index != nullptr});
}

// The commands are "AddIndex::VolatileTree" and "RemoveIndex::", as the published code names them.
Shard::Outcome Shard::configure_pool(const Job& job) {
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

// --- searching -----------------------------------------------------------------------------------

std::optional<Shard::Outcome> Shard::find(const Job& job) {
  if (!job.pool->index) return tl::unexpected(objects::Error::unsupported);
  const auto search = rpc::read_message<Search>(job.request.value);
  if (search.match > objects::Match::next) return tl::unexpected(objects::Error::invalid);
  const auto result =
      job.pool->index->find(text_of(job.request.key), search.match, search.position);
  if (result.outcome != index::FindResult::Outcome::more) return found(job, result);
  Executor::current().spawn(find_further(job, result.position, Keeper(*this, job)));
  return std::nullopt;
}

// Yields between the parts of a long search. Keys inserted or erased meanwhile shift the positions
// of the keys after them, as they do between two searches.
Task<> Shard::find_further(Job job, std::uint64_t position, [[maybe_unused]] Keeper keeper) {
  const auto search = rpc::read_message<Search>(job.request.value);
  for (;;) {
    co_await yield();
    if (job.session->ended) co_return;
    if (!job.pool->index) co_return finish(job, tl::unexpected(objects::Error::unsupported));
    const auto result = job.pool->index->find(text_of(job.request.key), search.match, position);
    if (result.outcome != index::FindResult::Outcome::more) {
      co_return finish(job, found(job, result));
    }
    position = result.position;
  }
}

Shard::Outcome Shard::found(const Job& job, const index::FindResult& result) {
  if (result.outcome == index::FindResult::Outcome::invalid) {
    return tl::unexpected(objects::Error::invalid);
  }
  if (result.outcome != index::FindResult::Outcome::found) {
    return tl::unexpected(objects::Error::not_found);
  }
  const std::span<std::byte> reply = reply_value(job);
  if (sizeof result.position + result.key.size() > reply.size()) {
    return tl::unexpected(objects::Error::too_large);
  }
  rpc::write_message(reply, result.position);
  copy_bytes(reply.subspan(sizeof result.position), result.key);
  return sizeof result.position + result.key.size();
}

// --- the shard -----------------------------------------------------------------------------------

Shard::Outcome Shard::statistics(const Job& job) {
  objects::ShardStatistics now = statistics_;
  now.pools = pools_.count();
  return reply_with(job, now);
}

}  // namespace perdura::systems::mcas
