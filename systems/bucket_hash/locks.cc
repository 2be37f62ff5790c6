#include "systems/bucket_hash/locks.h"

#include <algorithm>
#include <cassert>
#include <mutex>

namespace perdura::systems::bucket_hash {

namespace {

// The polling interval of a worker that waits for the end of a resize.
constexpr Picoseconds kGlance = Microseconds(1);

}  // namespace

// --- the exclusive lock --------------------------------------------------------------------------

Task<LockTable::SharedLock> LockTable::enter(std::uint32_t worker) {
  SpinLock& gate = gates_[worker].lock;
  for (;;) {
    gate.lock();
    if (!closed_.load(std::memory_order_acquire)) co_return SharedLock(gate);
    gate.unlock();
    co_await sleep_for(kGlance);
  }
}

// After pass_gates() no worker is inside, and a worker that locks its gate sees `closed_`.
std::optional<LockTable::ExclusiveLock> LockTable::upgrade(SharedLock shared) {
  if (closed_.exchange(true, std::memory_order_acq_rel)) return std::nullopt;
  shared.leave();
  pass_gates();
  return ExclusiveLock(*this);
}

// On `sim` a lock remembers until when it was held, so passing the gates makes them remember until
// when the index was closed.
void LockTable::open() {
  pass_gates();
  closed_.store(false, std::memory_order_release);
}

void LockTable::pass_gates() {
  for (PaddedLock& gate : gates_) {
    const std::scoped_lock passed(gate.lock);
  }
}

// --- locks of units ------------------------------------------------------------------------------

LockTable::Held::Held(LockTable& table, std::span<const std::uint64_t> things) : table_(table) {
  assert(things.size() <= kMost);
  for (const std::uint64_t thing : things) {
    if (!has(lock_of(thing))) locks_[count_++] = lock_of(thing);
  }
  std::sort(locks_.begin(), locks_.begin() + count_);
  for (std::size_t i = 0; i < count_; ++i) table_.locks_[locks_[i]].lock.lock();
}

LockTable::Held::~Held() {
  while (count_ > 0) table_.locks_[locks_[--count_]].lock.unlock();
}

bool LockTable::Held::try_add(std::uint64_t thing) {
  const std::uint32_t lock = lock_of(thing);
  if (has(lock)) return true;
  assert(count_ < kMost);
  if (!table_.locks_[lock].lock.try_lock()) return false;
  locks_[count_++] = lock;
  return true;
}

bool LockTable::Held::has(std::uint32_t lock) const {
  return std::find(locks_.begin(), locks_.begin() + count_, lock) != locks_.begin() + count_;
}

}  // namespace perdura::systems::bucket_hash
