#include "systems/mcas/key_locks.h"

#include <algorithm>

namespace perdura::systems::mcas {

bool KeyLocks::Less::operator()(Key a, Key b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

KeyLocks::Waiter::Waiter(KeyLocks& its_locks, LockedKeys::iterator its_entry, LockMode its_mode)
    : locks(its_locks), at(its_entry), mode(its_mode) {
  at->second.waiting.push_back(this);
}

KeyLocks::Waiter::~Waiter() {
  if (taken) return;
  if (granted) {
    locks.release(at, mode);
  } else {
    std::erase(at->second.waiting, this);
    locks.update(at);
  }
}

std::optional<KeyLocks::Lock> KeyLocks::try_lock(Key key, LockMode mode) {
  if (!allows(key, mode)) return std::nullopt;
  const auto at = entry_of(key);
  at->second.grant(mode);
  return Lock(*this, at, mode);
}

Task<KeyLocks::Lock> KeyLocks::lock(Key key, LockMode mode) {
  if (std::optional<Lock> at_once = try_lock(key, mode)) co_return std::move(*at_once);
  Waiter waiter(*this, entry_of(key), mode);
  while (!waiter.granted) co_await wait(waiter.woken);
  waiter.taken = true;
  co_return Lock(*this, waiter.at, mode);
}

bool KeyLocks::would_grant(Key key, LockMode mode) const {
  const auto found = entries_.find(key);
  return found == entries_.end() || (found->second.waiting.empty() && found->second.grants(mode));
}

KeyLocks::LockedKeys::iterator KeyLocks::entry_of(Key key) {
  const auto found = entries_.find(key);
  if (found != entries_.end()) return found;
  SpareNodes<LockedKeys>::Node node = spare_.take();
  node.key().assign(key.begin(), key.end());
  return entries_.insert(std::move(node)).position;
}

void KeyLocks::release(LockedKeys::iterator at, LockMode mode) {
  LockedKey& entry = at->second;
  if (mode == LockMode::shared) {
    --entry.shared;
  } else {
    entry.exclusive = false;
  }
  update(at);
}

void KeyLocks::update(LockedKeys::iterator at) {
  LockedKey& entry = at->second;
  while (!entry.waiting.empty() && entry.grants(entry.waiting.front()->mode)) {
    Waiter& next = *entry.waiting.front();
    entry.waiting.pop_front();
    entry.grant(next.mode);
    next.granted = true;
    next.woken.wake_one();
  }
  if (entry.unused()) spare_.erase(entries_, at);
}

}  // namespace perdura::systems::mcas
