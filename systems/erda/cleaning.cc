// The server's side of log cleaning (Liu et al., section 4.4): requests by SEND, and the protocol
// that leads clients from one-sided access to SEND and back.
#include <algorithm>
#include <mutex>

#include "systems/erda/server.h"

namespace perdura::systems::erda {

// --- requests by SEND ----------------------------------------------------------------------------

// Such requests may also arrive before the cleaner has begun or after it has ended: from clients
// that were told of the beginning before others, or that have not yet been told of the end.
ErdaPartition::Progress ErdaPartition::write(const Request& request) {
  const std::scoped_lock lock(store_.lock());
  const bool erase = request.header.kind == RequestKind::erase;
  const std::uint8_t head = store_.layout().head_of(request.key);
  std::optional<hopscotch::TableEntry> entry = store_.table().find(request.key);
  if (store_.space().phase(head) == Phase::normal && newest_is_being_written(request.key, entry)) {
    return Progress::newest_is_being_written;
  }
  const Outcome outcome = store_.write_version(erase, request.key, entry, request.object, object_);
  if (outcome == Outcome::out_of_space && reclaim(head)) return Progress::waits_for_space;
  if (outcome == Outcome::ok) clean_if_due(head);
  answer(request, {.outcome = outcome});
  return Progress::done;
}

ErdaPartition::Progress ErdaPartition::read(const Request& request) {
  const std::scoped_lock lock(store_.lock());
  const std::optional<hopscotch::TableEntry> entry = store_.table().find(request.key);
  std::optional<ObjectFormat::Object> object;
  if (entry) object = store_.read_newest(*entry, object_);
  if (!object || object->deleted) {
    answer(request, {.outcome = Outcome::not_found});
  } else if (object->value.size() > message_size_ - sizeof(Message)) {
    answer(request, {.outcome = Outcome::too_large});
  } else {
    answer(request, {.value = object->value.size()}, object->value);
  }
  return Progress::done;
}

// --- when a head is cleaned (the lock is held)
// -----------------------------------------------------

bool ErdaPartition::reclaim(std::uint8_t head) {
  const auto under_way = [](const HeadCleaning& cleaning) { return !cleaning.access.one_sided(); };
  if (store_.space().any_cleaning() ||
      std::any_of(cleanings_.begin(), cleanings_.end(), under_way)) {
    return true;
  }
  const std::optional<std::uint8_t> best = store_.space().best_to_clean(head);
  return best && start_cleaning(*best);
}

void ErdaPartition::clean_if_due(std::uint8_t head) {
  if (store_.space().wants_cleaning(head)) start_cleaning(head);
}

bool ErdaPartition::start_cleaning(std::uint8_t head) {
  // The cleaner thread may have ended a cleaning whose end this thread has not announced yet.
  if (announced(head)) return false;
  if (store_.space().cleaning(head) || !store_.space().promise(head)) return false;
  thread_.executor.spawn(clean(head));
  return true;
}

Task<> ErdaPartition::clean(std::uint8_t head) {
  HeadCleaning& cleaning = cleanings_[head - 1];
  announce(head);
  thread_.executor.spawn(end_slow_sessions(head, cleaning.access.generation));
  while (cleaning.sessions_waited_for > 0) co_await wait(cleaning.all_acknowledged);

  if (!cleaner_thread_) cleaner_thread_ = thread_.node.start_background_thread();
  co_await cleaner_thread_->run(cleaner_.clean(head));

  const std::scoped_lock lock(store_.lock());
  ++cleaning.access.generation;
  cleaning.access.chain = store_.space().chain(head);
  control_->store(kHeadAccess + (head - 1) * kWord, cleaning.access.word());
  notify_all(head);
  ++cleanings_ended_;
  cleaning_ended_.wake_all();
  if (clean_always_) start_cleaning(head);
  for (std::uint8_t other = 1; other <= cleanings_.size(); ++other) clean_if_due(other);
}

// --- notices -------------------------------------------------------------------------------------

void ErdaPartition::announce(std::uint8_t head) {
  HeadCleaning& cleaning = cleanings_[head - 1];
  ++cleaning.access.generation;
  control_->store(kHeadAccess + (head - 1) * kWord, cleaning.access.word());
  for (ServerSession& session : sessions_) {
    if (session.is_free()) continue;
    cleaning.waiting_for[session.number] = true;
    ++cleaning.sessions_waited_for;
  }
  notify_all(head);
}

// Each session has one buffer for the notice of a beginning and one for that of an end. A beginning
// is announced again only after the client has acknowledged the previous one, and has thus read
// both.
void ErdaPartition::notify_all(std::uint8_t head) {
  const HeadAccess access = cleanings_[head - 1].access;
  const std::uint32_t slot = (head - 1U) * 2 + (access.one_sided() ? 1 : 0);
  notices_.send_all(sessions_, slot,
                    {.kind = MessageKind::notice, .target = head, .value = access.word()});
}

void ErdaPartition::acknowledge(ServerSession& session, const RequestHeader& header) {
  if (header.head_or_sequence < 1 || header.head_or_sequence > cleanings_.size()) return;
  const auto head = static_cast<std::uint8_t>(header.head_or_sequence);
  if (header.word != cleanings_[head - 1].access.generation) return;
  end_reservations(session, head);
  acknowledged(session.number, head);
}

void ErdaPartition::acknowledged(std::uint32_t session, std::uint8_t head) {
  HeadCleaning& cleaning = cleanings_[head - 1];
  if (!cleaning.waiting_for[session]) return;
  cleaning.waiting_for[session] = false;
  if (--cleaning.sessions_waited_for == 0) cleaning.all_acknowledged.wake_all();
}

// A client that does not acknowledge must not access the head one-sidedly later, so its connection
// is closed.
Task<> ErdaPartition::end_slow_sessions(std::uint8_t head, std::uint32_t generation) {
  co_await sleep_for(client_timeout_);
  const HeadCleaning& cleaning = cleanings_[head - 1];
  if (cleaning.access.generation != generation) co_return;
  for (ServerSession& session : sessions_) {
    if (cleaning.waiting_for[session.number]) end_session(*session.queue_pair);
  }
}

}  // namespace perdura::systems::erda
