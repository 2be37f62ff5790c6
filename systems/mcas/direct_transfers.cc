#include "systems/mcas/direct_transfers.h"

#include <algorithm>
#include <array>
#include <optional>

#include "platform/runtime/work.h"
#include "systems/mcas/key_requests.h"
#include "systems/mcas/reservation.h"

namespace perdura::systems::mcas {

namespace {

// A value of at most so many bytes may be stored inside an entry of the table, and moves with it
// when other entries need room. So it is copied through the reply buffer, as for a get.
constexpr Bytes kLongestThatMoves = hstore::kLongestInField;
static_assert(kLongestThatMoves <= kLongestArgument);

// Returns nothing if the range is not within the value.
std::optional<ByteRange> part_of(const ByteRange& value, const Transfer& transfer) {
  if (transfer.value_offset > value.length ||
      transfer.length > value.length - transfer.value_offset) {
    return std::nullopt;
  }
  return ByteRange{value.offset + transfer.value_offset, transfer.length};
}

fabric::RemoteAddress remote_of(const Transfer& transfer, Bytes at) {
  return {{transfer.remote_key}, transfer.remote_offset + at};
}

// Moves `length` bytes in pieces, two of which are in flight at a time: the next piece moves while
// `completed` processes the last one. `start` creates the operation of a piece. Returns false if an
// operation has failed.
template <class Start, class Completed>
Task<bool> move_pieces(Bytes length, Bytes piece, Start start, Completed completed) {
  std::array<std::optional<fabric::RdmaOperation>, 2> under_way;
  const auto post = [&](Bytes at) {
    if (at >= length) return;
    start(under_way[at / piece % 2], at, static_cast<std::uint32_t>(std::min(piece, length - at)));
    under_way[at / piece % 2]->post();
  };
  bool moved = true;
  post(0);
  for (Bytes at = 0; at < length; at += piece) {
    if (moved) post(at + piece);
    std::optional<fabric::RdmaOperation>& next = under_way[at / piece % 2];
    if (!next) break;
    fabric::RdmaOperation& operation = *next;
    const fabric::Completion completion = co_await operation;
    moved = moved && completion;
    next.reset();
    if (moved) completed(at, std::min(piece, length - at));
  }
  co_return moved;
}

}  // namespace

DirectTransfers::DirectTransfers(Thread& thread, Pools& pools, Growth& growth,
                                 ShardSessions& sessions, const Parameters& parameters)
    : pools_(pools),
      growth_(growth),
      sessions_(sessions),
      piece_(std::min<Bytes>(parameters.direct_piece, thread.endpoint.capabilities().max_message)),
      pool_memory_(thread.endpoint.register_memory(pools.region(), fabric::Access::local)) {}

Task<JobOutcome> DirectTransfers::execute(const Job& job) {
  const auto transfer = rpc::read_message<Transfer>(job.request.value);
  switch (job.request.header.kind) {
    case RequestKind::put_direct:
      return put_direct(job, transfer);
    case RequestKind::put_direct_offset:
      return put_direct_offset(job, transfer);
    default:
      return get_direct(job, transfer);
  }
}

// The key is not locked until the value has arrived: others see the old value meanwhile.
Task<JobOutcome> DirectTransfers::put_direct(const Job& job, Transfer from) {
  Pool& pool = *job.pool;
  const Key key = job.request.key;
  if (from.value_offset != 0) co_return tl::unexpected(objects::Error::invalid);
  if (from.length > kLongestValue) co_return tl::unexpected(objects::Error::too_large);
  const bool overwrites = (job.request.header.flags & kNoOverwrite) == 0;
  co_await Growth::until_over(pool);
  if (!overwrites && pool.engine->get(key)) co_return tl::unexpected(objects::Error::exists);
  Reservation value(pool, from.length);
  if (!value.range()) co_return tl::unexpected(objects::Error::out_of_space);
  if (!co_await fetch(*job.session, from, *value.range())) {
    co_return tl::unexpected(objects::Error::disconnected);
  }
  const KeyLocks::Lock lock = co_await pool.locks.lock(key, LockMode::exclusive);
  if (job.session->ended) co_return tl::unexpected(objects::Error::disconnected);
  for (;;) {
    co_await Growth::until_over(pool);
    if (!overwrites && pool.engine->get(key)) co_return tl::unexpected(objects::Error::exists);
    const PutOutcome outcome = pool.engine->put_reserved(key, *value.range());
    if (outcome == PutOutcome::done) value.taken();
    if (outcome != PutOutcome::must_grow) co_return KeyRequests::outcome_of(pool, key, outcome);
    co_await growth_.grow(pool);
  }
}

// Transfers the whole value or a part of it.
Task<JobOutcome> DirectTransfers::get_direct(const Job& job, Transfer to) {
  const Key key = job.request.key;
  const bool whole = job.request.header.kind == RequestKind::get_direct;
  const KeyLocks::Lock lock = co_await job.pool->locks.lock(key, LockMode::shared);
  co_await Growth::until_over(*job.pool);
  const std::optional<ByteRange> value = job.pool->engine->get(key);
  if (!value) co_return tl::unexpected(objects::Error::not_found);
  if (whole && to.value_offset != 0) co_return tl::unexpected(objects::Error::invalid);
  if (whole && value->length > to.length) co_return tl::unexpected(objects::Error::too_large);
  const std::optional<ByteRange> part = whole ? value : part_of(*value, to);
  if (!part) co_return tl::unexpected(objects::Error::invalid);
  bool sent = false;
  if (value->length > kLongestThatMoves) {
    sent = co_await send(*job.session, to, pool_memory_.local(part->offset, 0), part->length);
  } else {
    pools_.region().read_unchanging(part->offset, sessions_.reply_value(job).first(part->length));
    const fabric::LocalBuffer copy = sessions_.reply_buffer(job);
    sent = co_await send(*job.session, to, copy.slice(sizeof(Reply), 0), part->length);
  }
  if (!sent) co_return tl::unexpected(objects::Error::disconnected);
  co_return whole ? sessions_.reply_with(job, std::uint64_t{part->length}) : JobOutcome(0);
}

// Writes in place: a failure may leave any of the bytes new or old.
Task<JobOutcome> DirectTransfers::put_direct_offset(const Job& job, Transfer from) {
  Engine& engine = *job.pool->engine;
  const Key key = job.request.key;
  const KeyLocks::Lock lock = co_await job.pool->locks.lock(key, LockMode::exclusive);
  co_await Growth::until_over(*job.pool);
  const std::optional<ByteRange> value = engine.get(key);
  if (!value) co_return tl::unexpected(objects::Error::not_found);
  const std::optional<ByteRange> part = part_of(*value, from);
  if (!part) co_return tl::unexpected(objects::Error::invalid);
  if (value->length > kLongestThatMoves) {
    const bool fetched = co_await fetch(*job.session, from, *part);
    pools_.memory().drain();
    co_return fetched ? JobOutcome(0) : tl::unexpected(objects::Error::disconnected);
  }
  const fabric::LocalBuffer copy =
      sessions_.reply_buffer(job).slice(sizeof(Reply), static_cast<std::uint32_t>(part->length));
  fabric::RdmaOperation read = job.session->queue_pair->read(copy, remote_of(from, 0));
  if (!co_await read) co_return tl::unexpected(objects::Error::disconnected);
  co_await Growth::until_over(*job.pool);
  // The value may have moved. Since its key is locked, its length can have changed only if
  // something other than the shard wrote to the pool.
  const std::optional<ByteRange> moved = engine.get(key);
  const std::optional<ByteRange> now = moved ? part_of(*moved, from) : std::nullopt;
  if (!now) throw DamagedPool("a value has changed its length while its key was locked");
  pools_.region().write(now->offset, copy.bytes());
  pools_.memory().persist(*now);
  co_return 0;
}

// Moves the data into persistent memory and flushes it. It is durable after the next drain().
Task<bool> DirectTransfers::fetch(ShardSession& session, const Transfer& from, ByteRange into) {
  co_return co_await move_pieces(
      into.length, piece_,
      [&](std::optional<fabric::RdmaOperation>& operation, Bytes at, std::uint32_t length) {
        operation.emplace(*session.queue_pair,
                          fabric::WorkRequest{.opcode = fabric::Opcode::read,
                                              .local = pool_memory_.local(into.offset + at, length),
                                              .remote = remote_of(from, at)});
      },
      [&](Bytes at, Bytes length) {
        pools_.memory().flush({into.offset + at, length});
      });
}

Task<bool> DirectTransfers::send(ShardSession& session, const Transfer& to,
                                 fabric::LocalBuffer from, Bytes length) {
  co_return co_await move_pieces(
      length, piece_,
      [&](std::optional<fabric::RdmaOperation>& operation, Bytes at, std::uint32_t piece) {
        operation.emplace(*session.queue_pair, fabric::WorkRequest{.opcode = fabric::Opcode::write,
                                                                   .local = from.slice(at, piece),
                                                                   .remote = remote_of(to, at)});
      },
      [](Bytes, Bytes) {});
}

}  // namespace perdura::systems::mcas
