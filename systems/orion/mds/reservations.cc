#include "systems/orion/mds/reservations.h"

#include <algorithm>
#include <mutex>

namespace perdura::systems::orion {

namespace {

bool have_common(std::span<const std::uint64_t> some, std::span<const std::uint64_t> others) {
  return std::find_first_of(some.begin(), some.end(), others.begin(), others.end()) != some.end();
}

}  // namespace

template <class Condition>
void Reservations::drop(Condition condition) {
  places_.remove_if(condition);
  count_.store(places_.size(), std::memory_order_release);
}

void Reservations::drop_expired(Time now) {
  drop([now](const Place& place) { return place.session && place.until <= now; });
}

Reservations::Places::iterator Reservations::find(Ticket ticket) {
  return std::find_if(places_.begin(), places_.end(),
                      [ticket](const Place& place) { return place.ticket == ticket; });
}

bool Reservations::is_free(std::uint64_t inode) {
  if (are_none()) return true;
  const std::lock_guard guard(lock_);
  return std::none_of(places_.begin(), places_.end(), [&](const Place& place) {
    return have_common(place.inodes, std::span(&inode, 1));
  });
}

Reservations::Ticket Reservations::enter(std::span<const std::uint64_t> inodes) {
  const std::lock_guard guard(lock_);
  places_.push_back({++last_, {inodes.begin(), inodes.end()}});
  count_.store(places_.size(), std::memory_order_release);
  return last_;
}

bool Reservations::is_turn(Ticket ticket, Time now) {
  const std::lock_guard guard(lock_);
  drop_expired(now);
  const auto own = find(ticket);
  return std::none_of(places_.begin(), own, [&](const Place& earlier) {
    return have_common(earlier.inodes, own->inodes);
  });
}

void Reservations::leave(Ticket ticket) {
  if (ticket == 0) return;
  const std::lock_guard guard(lock_);
  drop([ticket](const Place& place) { return place.ticket == ticket; });
}

void Reservations::reserve(Ticket ticket, SessionNumber session, Time until) {
  const std::lock_guard guard(lock_);
  const auto own = find(ticket);
  own->session = session;
  own->until = until;
}

Reservations::Ticket Reservations::take_up(SessionNumber session, std::uint64_t inode, Time now) {
  const std::lock_guard guard(lock_);
  drop_expired(now);
  const auto own = std::find_if(places_.begin(), places_.end(), [&](const Place& place) {
    return place.session == session && have_common(place.inodes, std::span(&inode, 1));
  });
  if (own == places_.end()) return 0;
  own->session.reset();
  return own->ticket;
}

void Reservations::end_session(SessionNumber session) {
  if (are_none()) return;
  const std::lock_guard guard(lock_);
  drop([session](const Place& place) { return place.session == session; });
}

}  // namespace perdura::systems::orion
