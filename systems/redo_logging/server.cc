#include "systems/redo_logging/server.h"

#include <fmt/core.h>

#include <algorithm>

#include "rpc/messages.h"

namespace perdura::systems::redo_logging {

using fabric::Access;
using fabric::LocalBuffer;
using write_ahead::Log;
using write_ahead::LogEntry;
using write_ahead::Parameters;
using write_ahead::Record;
using write_ahead::Reply;
using write_ahead::ReplyStatus;
using write_ahead::Room;
using write_ahead::status_of;

RedoServer::RedoServer(Thread& thread, const std::string& name, const kv::KvConfig& config)
    : Server(thread, name, kName, config,
             Parameters::of(config, kName, least_log_slots(config.sessions))),
      log_memory_(thread.endpoint.register_memory(
          store_.pool(), store_.shape().log_offset(),
          store_.shape().log_slots * store_.shape().log_slot_size(), Access::local)),
      answers_(thread.node.create_region(fmt::format("{} answers", name),
                                         Bytes{config.sessions} * window() * kCacheLine,
                                         pmem::Medium::dram)),
      answer_memory_(thread.endpoint.register_memory(*answers_, Access::local)),
      answered_(config.sessions),
      log_queue_(thread.endpoint.create_receive_queue(
          static_cast<std::uint32_t>(store_.shape().log_slots))),
      slots_(store_.shape().log_slots),
      flushes_records_(!config.put_method || config.put_method->uses(pmem::StepKind::flush)),
      posted_end_(store_.log().tail()),
      perhaps_lost_until_(store_.log().tail()) {
  keep_slots_posted();
}

// The connections must be destroyed before the queue from which they receive.
RedoServer::~RedoServer() { sessions_.clear(); }

Task<> RedoServer::serve() {
  // Each task keeps alive what it uses: the others may be destroyed before it.
  const auto self = shared_from_this();
  Executor::current().spawn(accept_connections(self));
  for (;;) {
    while (const auto completion = completions_.try_next()) handle(*completion);
    if (store_.apply_next()) {
      keep_slots_posted();
      co_await yield();
    } else {
      handle(co_await completions_.next());
    }
  }
}

Task<> RedoServer::settle() {
  while (store_.apply_next()) co_await yield();
  keep_slots_posted();
}

// --- the log -------------------------------------------------------------------------------------

// Reposts slots whose records recovery no longer needs. That happens at the latest when half of the
// log waits for it.
void RedoServer::keep_slots_posted() {
  Log& log = store_.log();
  while (log.tail() - log.applied() > log.quarter() && store_.apply_next()) {
  }
  for (; posted_end_ < log.replay_start() + log.slots(); ++posted_end_) {
    Slot& slot = slots_[log.slot(posted_end_)];
    slot.passed = slot.posted;
    if (slot.posted) continue;
    slot.posted = true;
    const Bytes size = store_.shape().log_slot_size();
    log_queue_->post(
        log_memory_.local(log.slot(posted_end_) * size, static_cast<std::uint32_t>(size)),
        log.slot(posted_end_));
  }
}

void RedoServer::record_arrived(ServerSession& session,
                                const fabric::ReceiveCompletion& completion) {
  Slot& slot = slots_[completion.buffer_id];
  slot.posted = false;
  slot.session = session.number;
  slot.epoch = session.epoch;
  slot.length = completion.buffer.length;
  if (slot.stray) {
    refuse_stray(slot, position_of(completion.buffer_id));
  } else {
    slot.arrived = true;
    ++arrived_;
  }
  take_arrived();
}

// Admits records in the order of their slots. Completions of different connections may be reported
// in another order, so a record that comes early waits.
void RedoServer::take_arrived() {
  Log& log = store_.log();
  while (arrived_ > 0) {
    Slot& slot = slots_[log.slot(log.tail())];
    if (slot.passed) {
      slot.passed = false;
      log.skip();
      keep_slots_posted();
    } else if (slot.arrived) {
      slot.arrived = false;
      --arrived_;
      take(slot);
    } else if (log.tail() < perhaps_lost_until_) {
      // The sender is gone, or its message is late; a late message is refused, which does no harm.
      // In either case recovery must not find the record.
      slot.stray = true;
      while (store_.apply_next()) {
      }
      log.skip();
      store_.apply_next();
      log.reclaim();
      keep_slots_posted();
    } else {
      return;
    }
  }
}

// "The server verifies the integrity of the message in the redo log and applies the write request
// asynchronously to the destination storage" (section 5.1). The client gets its answer before that.
void RedoServer::take(const Slot& message) {
  const Slot taken = message;
  const ReplyStatus status = admit(store_.log().tail(), taken);
  keep_slots_posted();
  answer(taken, status);
}

ReplyStatus RedoServer::admit(Position p, const Slot& message) {
  Log& log = store_.log();
  std::optional<Record> record = store_.arrived(p, message.length);
  if (!record) {
    log.skip();
    return ReplyStatus::stale_lap;
  }
  kv::Result<std::optional<Room>> room = store_.room_for(record->key);
  if (!room && log.pending()) {
    // A bucket reserved for a record that is not yet applied cannot be moved; an entry can. So the
    // store is full only if there is no room once all records have been applied.
    while (store_.apply_next()) {
    }
    record = store_.arrived(p, message.length);
    room = store_.room_for(record->key);
  }
  if (!room) {
    store_.invalidate(p);
    log.skip();
    return status_of(room.error());
  }
  if (flushes_records_) store_.persist(p, message.length);
  LogEntry& entry = log.append(record->key, static_cast<std::uint32_t>(record->value.size()),
                               LogEntry::State::verified, message.session);
  entry.room = *room;
  return ReplyStatus::done;
}

void RedoServer::refuse_stray(Slot& slot, Position p) {
  slot.stray = false;
  if (store_.arrived(p, slot.length)) store_.invalidate(p);
  answer(slot, ReplyStatus::stale_lap);
}

// Answers are sent in the order of the session's records, so they need no id.
void RedoServer::answer(const Slot& message, ReplyStatus status) {
  ServerSession& session = sessions_[message.session];
  if (!session.connected || session.epoch != message.epoch || !session.log) return;
  const std::uint64_t index = message.session * window() + answered_[message.session]++ % window();
  const LocalBuffer buffer = answer_memory_.local(index * kCacheLine, sizeof(Reply));
  rpc::write_message(buffer.bytes(), Reply{store_.log().tail(), 0, status, 0, 0});
  rpc::send(*session.log, buffer, max_inline_);
}

write_ahead::Position RedoServer::position_of(std::uint64_t slot) const {
  const Position start = store_.log().replay_start();
  const std::uint64_t slots = slots_.size();
  return start + (slot + slots - start % slots) % slots;
}

std::uint32_t RedoServer::window() const {
  const std::uint64_t window = store_.shape().log_slots / (2 * sessions_.size());
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(window, queue_depth_));
}

// --- requests and sessions -----------------------------------------------------------------------

void RedoServer::erase_requested(ServerSession& session, const Incoming& request) {
  const std::optional<kv::Result<void>> result = store_.erase(request.key);
  keep_slots_posted();
  reply(session, request.header.id,
        result->has_value() ? ReplyStatus::done : status_of(result->error()), store_.log().tail());
}

void RedoServer::reserve_requested(ServerSession& session, const Incoming& request) {
  reply(session, request.header.id, ReplyStatus::corrupt, store_.log().tail());
}

void RedoServer::session_ended(ServerSession&) {
  perhaps_lost_until_ = posted_end_;
  take_arrived();
}

std::optional<fabric::QueuePairOptions> RedoServer::log_options() {
  return fabric::QueuePairOptions{log_queue_.get(), &completions_, queue_depth_};
}

write_ahead::Welcome RedoServer::welcome() const {
  write_ahead::Welcome answer;
  answer.log_window = window();
  return answer;
}

}  // namespace perdura::systems::redo_logging
