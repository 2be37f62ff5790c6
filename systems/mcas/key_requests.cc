#include "systems/mcas/key_requests.h"

#include <utility>

#include "platform/runtime/work.h"

namespace perdura::systems::mcas {

std::optional<JobOutcome> KeyRequests::execute(const Job& job) {
  switch (job.request.header.kind) {
    case RequestKind::put:
      return put_at_once(job, job.request.value);
    case RequestKind::get:
      return get(job);
    default:
      return erase(job);
  }
}

Task<JobOutcome> KeyRequests::execute_when_unlocked(const Job& job) {
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

void KeyRequests::drain() {
  if (!std::exchange(drained_, true)) pools_.memory().drain();
}

// --- puts, gets and erases -----------------------------------------------------------------------

std::optional<JobOutcome> KeyRequests::put_at_once(const Job& job, Value value) {
  Pool& pool = *job.pool;
  const ParsedRequest& request = job.request;
  JobOutcome outcome = tl::unexpected(objects::Error::exists);
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

Task<JobOutcome> KeyRequests::put(const Job& job, Value value) {
  for (;;) {
    const std::optional<JobOutcome> outcome = put_at_once(job, value);
    drain();
    job.pool->note_space();
    if (outcome) co_return *outcome;
    co_await growth_.grow(*job.pool);
  }
}

JobOutcome KeyRequests::outcome_of(Pool& pool, Key key, PutOutcome outcome) {
  if (outcome == PutOutcome::out_of_space) {
    pool.note_space();
    return tl::unexpected(objects::Error::out_of_space);
  }
  pool.note_put(key);
  return 0;
}

JobOutcome KeyRequests::get(const Job& job) {
  ++statistics_.gets;
  const std::optional<ByteRange> value = job.pool->engine->get(job.request.key);
  if (!value) return tl::unexpected(objects::Error::not_found);
  if (value->length > sessions_.limits().max_value_size) {
    return tl::unexpected(objects::Error::too_large);
  }
  pools_.region().read_unchanging(value->offset, sessions_.reply_value(job).first(value->length));
  return value->length;
}

JobOutcome KeyRequests::erase(const Job& job) {
  ++statistics_.erases;
  if (!job.pool->engine->erase(job.request.key)) return tl::unexpected(objects::Error::not_found);
  job.pool->note_erased(job.request.key);
  return 0;
}

// The length of a value does not change while its key is locked, so this need not wait for a lock.
JobOutcome KeyRequests::attributes(const Job& job) const {
  const std::optional<ByteRange> value = job.pool->engine->get(job.request.key);
  if (!value) return tl::unexpected(objects::Error::not_found);
  return sessions_.reply_with(job, std::uint64_t{value->length});
}

// --- searching -----------------------------------------------------------------------------------

std::optional<JobOutcome> KeyRequests::find(const Job& job, std::shared_ptr<const void> shard) {
  if (!job.pool->index) return tl::unexpected(objects::Error::unsupported);
  const auto search = rpc::read_message<Search>(job.request.value);
  if (search.match > objects::Match::next) return tl::unexpected(objects::Error::invalid);
  const auto result =
      job.pool->index->find(text_of(job.request.key), search.match, search.position);
  if (result.outcome != index::FindResult::Outcome::more) return found(job, result);
  Executor::current().spawn(
      find_further(job, result.position, Keeper(std::move(shard), sessions_, job)));
  return std::nullopt;
}

// Yields between the parts of a long search. Keys inserted or erased meanwhile shift the positions
// of the keys after them, as they do between two searches.
Task<> KeyRequests::find_further(Job job, std::uint64_t position, [[maybe_unused]] Keeper keeper) {
  const auto search = rpc::read_message<Search>(job.request.value);
  for (;;) {
    co_await yield();
    if (job.session->ended) co_return;
    if (!job.pool->index) {
      co_return sessions_.finish(job, tl::unexpected(objects::Error::unsupported));
    }
    const auto result = job.pool->index->find(text_of(job.request.key), search.match, position);
    if (result.outcome != index::FindResult::Outcome::more) {
      co_return sessions_.finish(job, found(job, result));
    }
    position = result.position;
  }
}

JobOutcome KeyRequests::found(const Job& job, const index::FindResult& result) const {
  if (result.outcome == index::FindResult::Outcome::invalid) {
    return tl::unexpected(objects::Error::invalid);
  }
  if (result.outcome != index::FindResult::Outcome::found) {
    return tl::unexpected(objects::Error::not_found);
  }
  const std::span<std::byte> reply = sessions_.reply_value(job);
  if (sizeof result.position + result.key.size() > reply.size()) {
    return tl::unexpected(objects::Error::too_large);
  }
  rpc::write_message(reply, result.position);
  copy_bytes(reply.subspan(sizeof result.position), result.key);
  return sizeof result.position + result.key.size();
}

}  // namespace perdura::systems::mcas
