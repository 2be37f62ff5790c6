#include "tests/services/fs/posix/locks.h"

#include <algorithm>
#include <utility>

namespace perdura::fs::test {
namespace {

bool overlap(const RangeLock& one, const RangeLock& two) {
  return one.begin < two.end && two.begin < one.end;
}

void call_all(const std::vector<std::function<void()>>& calls) {
  for (const auto& call : calls) call();
}

}  // namespace

const LockTable::Held* LockTable::excluding(const std::vector<Held>& held, Owner owner,
                                            const RangeLock& lock) {
  for (const Held& other : held) {
    if (other.owner != owner && overlap(other.lock, lock) &&
        (other.lock.type == LockType::exclusive || lock.type == LockType::exclusive)) {
      return &other;
    }
  }
  return nullptr;
}

void LockTable::replace(std::vector<Held>& held, Owner owner, const RangeLock& lock) {
  std::vector<Held> changed;
  RangeLock grown = lock;
  for (const Held& one : held) {
    const RangeLock& old = one.lock;
    const bool touches = old.begin <= lock.end && lock.begin <= old.end;
    if (one.owner != owner || !touches) {
      changed.push_back(one);
    } else if (old.type == lock.type) {
      grown.begin = std::min(grown.begin, old.begin);
      grown.end = std::max(grown.end, old.end);
    } else {
      if (old.begin < lock.begin) changed.push_back({owner, {old.type, old.begin, lock.begin}});
      if (lock.end < old.end) changed.push_back({owner, {old.type, lock.end, old.end}});
      // A lock that only touches the range is kept whole by one of these two.
    }
  }
  if (lock.type != LockType::none) changed.push_back({owner, grown});
  std::stable_sort(changed.begin(), changed.end(), [](const Held& one, const Held& two) {
    return one.lock.begin < two.lock.begin;
  });
  held = std::move(changed);
}

const std::vector<LockTable::Held>& LockTable::ranges_of(InodeNumber inode) const {
  static const std::vector<Held> kNone;
  const auto file = files_.find(inode);
  return file == files_.end() ? kNone : file->second.ranges;
}

void LockTable::tidy(InodeNumber inode) {
  const auto file = files_.find(inode);
  if (file != files_.end() && file->second.ranges.empty() && file->second.whole.empty()) {
    files_.erase(file);
  }
}

Result<void> LockTable::set(InodeNumber inode, Owner owner, const RangeLock& lock) {
  if (lock.begin >= lock.end) return tl::unexpected(std::errc::invalid_argument);
  Calls calls;
  {
    const std::lock_guard guard(mutex_);
    if (lock.type != LockType::none && excluding(ranges_of(inode), owner, lock) != nullptr) {
      return tl::unexpected(std::errc::resource_unavailable_try_again);
    }
    replace(files_[inode].ranges, owner, lock);
    calls = grant(inode);
    tidy(inode);
  }
  call_all(calls);
  return {};
}

bool LockTable::would_deadlock(Owner owner, InodeNumber inode, Owner by, const RangeLock& lock,
                               std::set<Owner>& seen) const {
  for (const Held& other : ranges_of(inode)) {
    if (excluding({other}, by, lock) == nullptr) continue;
    if (other.owner == owner) return true;
    if (!seen.insert(other.owner).second) continue;
    for (const Waiting& next : waiting_) {
      if (next.owner == other.owner &&
          would_deadlock(owner, next.inode, next.owner, next.lock, seen)) {
        return true;
      }
    }
  }
  return false;
}

Result<bool> LockTable::set_or_wait(InodeNumber inode, Owner owner, const RangeLock& lock,
                                    std::function<void()> granted) {
  const Result<void> at_once = set(inode, owner, lock);
  if (at_once) return true;
  if (at_once.error() != std::errc::resource_unavailable_try_again) {
    return tl::unexpected(at_once.error());
  }
  Calls calls;
  {
    const std::lock_guard guard(mutex_);
    std::set<Owner> seen;
    if (would_deadlock(owner, inode, owner, lock, seen)) {
      return tl::unexpected(std::errc::resource_deadlock_would_occur);
    }
    waiting_.push_back({inode, owner, lock, std::move(granted)});
    // The excluding lock may have been released since set().
    calls = grant(inode);
    tidy(inode);
  }
  call_all(calls);
  return false;
}

LockTable::Calls LockTable::grant(InodeNumber inode) {
  Calls calls;
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    if (next->inode != inode || excluding(ranges_of(inode), next->owner, next->lock) != nullptr) {
      ++next;
      continue;
    }
    replace(files_[inode].ranges, next->owner, next->lock);
    calls.push_back(std::move(next->granted));
    waiting_.erase(next);
    // The owner may have given up a lock by this (exclusive to shared), so start again.
    next = waiting_.begin();
  }
  return calls;
}

void LockTable::stop_waiting(Owner owner) {
  const std::lock_guard guard(mutex_);
  waiting_.remove_if([&](const Waiting& one) { return one.owner == owner; });
}

std::optional<RangeLock> LockTable::test(InodeNumber inode, Owner owner,
                                         const RangeLock& lock) const {
  const std::lock_guard guard(mutex_);
  const Held* const other = excluding(ranges_of(inode), owner, lock);
  return other == nullptr ? std::nullopt : std::optional(other->lock);
}

Result<void> LockTable::set_whole(InodeNumber inode, Owner owner, LockType type) {
  const std::lock_guard guard(mutex_);
  std::vector<Held>& whole = files_[inode].whole;
  replace(whole, owner, {.type = LockType::none});
  const RangeLock lock{.type = type};
  const bool excluded = type != LockType::none && excluding(whole, owner, lock) != nullptr;
  if (!excluded) replace(whole, owner, lock);
  tidy(inode);
  if (excluded) return tl::unexpected(std::errc::resource_unavailable_try_again);
  return {};
}

void LockTable::release(InodeNumber inode, Owner owner) {
  Calls calls;
  {
    const std::lock_guard guard(mutex_);
    waiting_.remove_if(
        [&](const Waiting& one) { return one.inode == inode && one.owner == owner; });
    const auto file = files_.find(inode);
    if (file == files_.end()) return;
    replace(file->second.ranges, owner, {.type = LockType::none});
    replace(file->second.whole, owner, {.type = LockType::none});
    calls = grant(inode);
    tidy(inode);
  }
  call_all(calls);
}

bool LockTable::is_empty() const {
  const std::lock_guard guard(mutex_);
  return files_.empty() && waiting_.empty();
}

}  // namespace perdura::fs::test
