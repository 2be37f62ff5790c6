#include "systems/read_after_write/server.h"

#include <algorithm>

namespace perdura::systems::read_after_write {

using fabric::Access;
using write_ahead::Log;
using write_ahead::LogEntry;
using write_ahead::Parameters;
using write_ahead::Position;
using write_ahead::ReplyStatus;
using write_ahead::RequestKind;
using write_ahead::Room;
using write_ahead::status_of;

namespace {

// The initial and the longest interval of polling the ring while no request wakes up the server.
constexpr Microseconds kShortestPoll(20);
constexpr Microseconds kLongestPoll(100);

}  // namespace

RingServer::RingServer(Thread& thread, const std::string& name, const kv::KvConfig& config)
    : Server(thread, name, kName, config, Parameters::of(config, kName, kLeastLogSlots)),
      log_memory_(thread.endpoint.register_memory(
          store_.pool(), store_.shape().log_offset(),
          store_.shape().log_slots * store_.shape().log_slot_size(),
          Access::remote_read | Access::remote_write | Access::remote_flush)) {}

Task<> RingServer::serve() {
  const auto self = std::static_pointer_cast<RingServer>(shared_from_this());
  Executor::current().spawn(accept_connections(self));
  Executor::current().spawn(poll_ring(self));
  for (;;) {
    while (const auto completion = completions_.try_next()) handle(*completion);
    serve_waiting();
    if (apply_next(Look::glance)) {
      co_await yield();
    } else {
      handle(co_await completions_.next());
    }
  }
}

Task<> RingServer::settle() {
  while (store_.log().pending() || !waiting_.empty()) {
    if (apply_next(Look::thorough)) {
      co_await yield();
    } else {
      co_await sleep_for(kShortestPoll);
    }
    serve_waiting();
  }
}

// --- the ring ------------------------------------------------------------------------------------

// "The server CPU polls for these operations asynchronously from ring buffers and applies them to
// the destination storage" (section 5.1).
Task<> RingServer::poll_ring(std::shared_ptr<RingServer> self) {
  Picoseconds delay = kShortestPoll;
  for (;;) {
    while (!self->store_.log().pending()) {
      co_await wait(self->reserved_);
      delay = kShortestPoll;
    }
    co_await sleep_for(delay);
    delay = std::min<Picoseconds>(2 * delay, kLongestPoll);
    while (self->apply_next(Look::thorough)) {
      delay = kShortestPoll;
      co_await yield();
    }
    self->serve_waiting();
  }
}

bool RingServer::apply_next(Look look) {
  Log& log = store_.log();
  if (!log.pending()) return false;
  const Position first = log.applied();
  const LogEntry& entry = log.at(first);
  if (entry.state == LogEntry::State::reserved) {
    const bool untouched =
        look == Look::glance && store_.pool().load(log.offset(first)) == entry.word_before;
    if (untouched || !store_.verify(first)) return false;
  }
  return store_.apply_next();
}

bool RingServer::reserve(ServerSession& session, const Incoming& request) {
  if (request.header.value_length > store_.shape().max_value_size) {
    reply(session, request.header.id, ReplyStatus::too_large, store_.log().tail());
    return true;
  }
  Log& log = store_.log();
  while (log.tail() - log.applied() > log.slots() / 2 && apply_next(Look::glance)) {
  }
  if (log.full()) log.reclaim();
  if (log.full()) return false;
  kv::Result<std::optional<Room>> room = store_.room_for(request.key);
  if (!room) {
    // Reservations before this one may be for the same key, or may be given up. The store is full
    // only if there is no room once all of them have been applied.
    while (apply_next(Look::thorough)) {
    }
    if (log.pending()) return false;
    room = store_.room_for(request.key);
  }
  if (!room) {
    reply(session, request.header.id, status_of(room.error()), log.tail());
    return true;
  }
  const Position position = log.tail();
  LogEntry& entry = log.append(request.key, request.header.value_length, LogEntry::State::reserved,
                               session.number);
  entry.room = *room;
  entry.word_before = store_.pool().load(log.offset(position));
  reserved_.wake_one();
  reply(session, request.header.id, ReplyStatus::done, position);
  return true;
}

bool RingServer::erase(ServerSession& session, const Incoming& request) {
  const std::optional<kv::Result<void>> result = store_.erase(request.key);
  if (!result) return false;
  reply(session, request.header.id,
        result->has_value() ? ReplyStatus::done : status_of(result->error()), store_.log().tail());
  return true;
}

// --- requests and sessions -----------------------------------------------------------------------

void RingServer::reserve_requested(ServerSession& session, const Incoming& request) {
  if (!waiting_.empty() || !reserve(session, request)) wait_in_line(session, request);
}

// The record is in its slot, since this request was sent after its WRITE. Once it is applied, it is
// durable; the slot may then already belong to another record.
void RingServer::persist_requested(ServerSession& session, const Incoming& request) {
  Log& log = store_.log();
  ReplyStatus status = ReplyStatus::done;
  for (Position p = log.applied(); p < log.tail(); ++p) {
    if (static_cast<std::uint32_t>(p) != request.header.value_length) continue;
    if (log.at(p).state == LogEntry::State::reserved && !store_.verify(p)) {
      status = ReplyStatus::corrupt;
    }
  }
  reply(session, request.header.id, status, log.tail());
}

void RingServer::erase_requested(ServerSession& session, const Incoming& request) {
  if (!waiting_.empty() || !erase(session, request)) wait_in_line(session, request);
}

void RingServer::wait_in_line(ServerSession& session, const Incoming& request) {
  waiting_.push_back({session.number, request.header, {request.key.begin(), request.key.end()}});
}

void RingServer::serve_waiting() {
  while (!waiting_.empty()) {
    const Waiting& first = waiting_.front();
    ServerSession& session = sessions_[first.session];
    const Incoming request{first.header, first.key};
    const bool served = first.header.kind == RequestKind::erase ? erase(session, request)
                                                                : reserve(session, request);
    if (!served) return;
    waiting_.pop_front();
  }
}

void RingServer::record_arrived(ServerSession&, const fabric::ReceiveCompletion&) {}

// Reservations of the session that are still incomplete will never be completed.
void RingServer::session_ended(ServerSession& session) {
  std::erase_if(waiting_,
                [&](const Waiting& request) { return request.session == session.number; });
  Log& log = store_.log();
  for (Position p = log.applied(); p < log.tail(); ++p) {
    LogEntry& entry = log.at(p);
    if (entry.state != LogEntry::State::reserved || entry.owner != session.number) continue;
    if (!store_.verify(p)) entry.state = LogEntry::State::dropped;
  }
}

write_ahead::Welcome RingServer::welcome() const {
  write_ahead::Welcome answer;
  answer.log_key = log_memory_.key.value;
  return answer;
}

}  // namespace perdura::systems::read_after_write
