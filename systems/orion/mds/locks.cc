#include "systems/orion/mds/locks.h"

#include <algorithm>
#include <iterator>

namespace perdura::systems::orion {

namespace {

using fs::FileLock;
using fs::LockMode;

bool is_of_owner(const FileLock& held, const FileLock& lock) {
  return held.kind == lock.kind && held.owner == lock.owner;
}

bool overlap(const FileLock& a, const FileLock& b) {
  return a.kind == b.kind && a.first <= b.last && b.first <= a.last;
}

bool touch(const FileLock& a, const FileLock& b) {
  return a.first <= b.last + 1 && b.first <= a.last + 1;
}

}  // namespace

const Locks::HeldLock* Locks::find_forbidding(const HeldLocks& held, std::uint64_t mount,
                                              const FileLock& lock) {
  for (const HeldLock& each : held) {
    const bool is_own = each.mount == mount && is_of_owner(each.lock, lock);
    const bool both_share = each.lock.mode == LockMode::shared && lock.mode == LockMode::shared;
    if (!is_own && !both_share && overlap(each.lock, lock)) return &each;
  }
  return nullptr;
}

void Locks::give_up(HeldLocks& held, std::uint64_t mount, const FileLock& lock) {
  HeldLocks rests;
  std::erase_if(held, [&](const HeldLock& each) {
    if (each.mount != mount || !is_of_owner(each.lock, lock) || !overlap(each.lock, lock)) {
      return false;
    }
    if (each.lock.first < lock.first) {
      rests.push_back(each);
      rests.back().lock.last = lock.first - 1;
    }
    if (each.lock.last > lock.last) {
      rests.push_back(each);
      rests.back().lock.first = lock.last + 1;
    }
    return true;
  });
  held.insert(held.end(), rests.begin(), rests.end());
}

void Locks::add(HeldLocks& held, std::uint64_t mount, FileLock lock) {
  std::erase_if(held, [&](const HeldLock& each) {
    if (each.mount != mount || !is_of_owner(each.lock, lock) || each.lock.mode != lock.mode ||
        !touch(each.lock, lock)) {
      return false;
    }
    lock.first = std::min(lock.first, each.lock.first);
    lock.last = std::max(lock.last, each.lock.last);
    return true;
  });
  held.push_back({mount, lock});
}

std::errc Locks::set(std::uint64_t mount, std::uint64_t inode, const FileLock& lock) {
  if (lock.first > lock.last || lock.last > fs::kLargestFile) return std::errc::invalid_argument;
  const std::lock_guard guard(lock_);
  const auto found = held_.find(inode);
  if (lock.mode == LockMode::none) {
    if (found == held_.end()) return {};
    give_up(found->second, mount, lock);
    if (found->second.empty()) held_.erase(found);
    return {};
  }
  HeldLocks& held = held_[inode];
  if (find_forbidding(held, mount, lock) != nullptr) {
    return std::errc::resource_unavailable_try_again;
  }
  if (held.size() >= kMost) return std::errc::no_lock_available;
  give_up(held, mount, lock);
  add(held, mount, lock);
  return {};
}

std::optional<FileLock> Locks::forbidding(std::uint64_t mount, std::uint64_t inode,
                                          const FileLock& lock) const {
  const std::lock_guard guard(lock_);
  const auto found = held_.find(inode);
  if (found == held_.end()) return std::nullopt;
  const HeldLock* const forbids = find_forbidding(found->second, mount, lock);
  return forbids == nullptr ? std::nullopt : std::optional(forbids->lock);
}

void Locks::end(std::uint64_t mount, std::uint64_t inode) {
  const std::lock_guard guard(lock_);
  const auto found = held_.find(inode);
  if (found == held_.end()) return;
  std::erase_if(found->second, [&](const HeldLock& each) { return each.mount == mount; });
  if (found->second.empty()) held_.erase(found);
}

void Locks::end(std::uint64_t mount) {
  const std::lock_guard guard(lock_);
  for (auto at = held_.begin(); at != held_.end();) {
    std::erase_if(at->second, [&](const HeldLock& each) { return each.mount == mount; });
    at = at->second.empty() ? held_.erase(at) : std::next(at);
  }
}

}  // namespace perdura::systems::orion
