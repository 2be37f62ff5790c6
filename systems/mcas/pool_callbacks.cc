#include "systems/mcas/pool_callbacks.h"

#include <algorithm>
#include <array>

#include "platform/runtime/executor.h"
#include "systems/mcas/allocations.h"
#include "systems/mcas/reservation.h"

namespace perdura::systems::mcas {

using ado::CallStatus;
using ado::Created;

namespace {

Key as_key(const std::string& text) { return std::as_bytes(std::span(text)); }

LockMode lock_mode(ado::LockMode mode) {
  return mode == ado::LockMode::write ? LockMode::exclusive : LockMode::shared;
}

objects::Match match_of(ado::Matching matching) {
  switch (matching) {
    case ado::Matching::exactly:
      return objects::Match::exact;
    case ado::Matching::prefix:
      return objects::Match::prefix;
    case ado::Matching::regular_expression:
      break;
  }
  return objects::Match::regular_expression;
}

}  // namespace

bool PoolCallbacks::is_key(const std::string& key) const {
  return !key.empty() && key.size() <= max_key_size_ && !is_allocation(as_key(key));
}

template <class Use>
auto PoolCallbacks::guarded(Use use) const -> std::optional<std::invoke_result_t<Use, Engine&>> {
  if (!pool_->damage.empty()) return std::nullopt;
  try {
    return use(*pool_->engine);
  } catch (const DamagedPool& damage) {
    pools_.close_damaged(*pool_, damage);
    return std::nullopt;
  }
}

std::optional<ByteRange> PoolCallbacks::range_of(Key key) const {
  return guarded([&](const Engine& engine) { return engine.get(key); }).value_or(std::nullopt);
}

bool PoolCallbacks::sees(const ByteRange& range) {
  return std::any_of(parts_.begin(), parts_.end(), [&](const ByteRange& part) {
    return range.offset >= part.offset && range.end() <= part.end();
  });
}

// --- locks ---------------------------------------------------------------------------------------

bool PoolCallbacks::try_lock(const std::string& key, ado::LockMode mode) {
  std::optional<KeyLocks::Lock> lock = pool_->locks.try_lock(as_key(key), lock_mode(mode));
  if (!lock) return false;
  hold(key, mode, std::move(*lock));
  return true;
}

void PoolCallbacks::hold(const std::string& key, ado::LockMode mode, KeyLocks::Lock lock) {
  SpareNodes<AllHeld>::Node node = spare_.take();
  node.key() = key;
  node.mapped() = {mode, std::move(lock)};
  held_.insert(std::move(node));
}

void PoolCallbacks::unlock(const std::string& key, ado::LockMode mode) {
  const auto [first, last] = held_.equal_range(key);
  const auto held =
      std::find_if(first, last, [&](const auto& one) { return one.second.mode == mode; });
  if (held == last) return;
  held->second.lock.unlock();
  spare_.erase(held_, held);
}

// --- values --------------------------------------------------------------------------------------

std::optional<ByteRange> PoolCallbacks::find(const std::string& key) {
  if (!is_key(key)) return std::nullopt;
  const std::optional<ByteRange> range = range_of(as_key(key));
  if (range && range->length <= hstore::kLongestInField) return ByteRange{range->offset, 0};
  return range;
}

std::optional<std::string> PoolCallbacks::read(const std::string& key) {
  const std::optional<ByteRange> range = is_key(key) ? range_of(as_key(key)) : std::nullopt;
  if (!range) return std::nullopt;
  std::string value(range->length, '\0');
  pools_.region().read(range->offset, std::as_writable_bytes(std::span(value)));
  return value;
}

Task<Created> PoolCallbacks::put(Bytes length, Where where, Write write, KeyOf key) {
  if (length > kLongestValue) co_return Created{CallStatus::refused};
  co_await until_usable();
  Reservation value(*pool_, length);
  if (!value.range()) co_return Created{CallStatus::out_of_space};
  const ByteRange range = *value.range();
  if (where == Where::seen && !sees(range)) co_return Created{CallStatus::unseen};
  write(range);
  pools_.memory().flush(range);
  for (;;) {
    co_await until_usable();
    const auto outcome =
        guarded([&](Engine& engine) { return engine.put_reserved(key(range), range); });
    if (!outcome) co_return Created{CallStatus::refused};
    if (outcome == PutOutcome::out_of_space) co_return Created{CallStatus::out_of_space};
    if (outcome == PutOutcome::done) break;
    co_await growth_.grow(*pool_);
  }
  value.taken();
  pool_->note_put(key(range));
  co_return Created{CallStatus::done, range};
}

Task<Created> PoolCallbacks::create_value(std::string key, Bytes length, bool zeros) {
  const Write write = [this, zeros](ByteRange range) {
    if (zeros) write_zeros(range);
  };
  return put(length, Where::anywhere, write,
             [key = std::move(key)](ByteRange) { return as_key(key); });
}

Task<Created> PoolCallbacks::create(std::string key, Bytes length) {
  if (!is_key(key)) co_return Created{CallStatus::refused};
  const Write write = [this](ByteRange range) { write_zeros(range); };
  const KeyOf key_of = [&key](ByteRange) { return as_key(key); };
  co_return placed(co_await put(length, Where::seen, write, key_of), key);
}

Task<Created> PoolCallbacks::resize(std::string key, Bytes length) {
  co_await until_usable();
  const std::optional<ByteRange> before = is_key(key) ? range_of(as_key(key)) : std::nullopt;
  if (!before) co_return Created{CallStatus::not_found};
  std::vector<std::byte> kept(std::min(before->length, length));
  pools_.region().read(before->offset, kept);
  const Write write = [this, &kept](ByteRange range) {
    pools_.region().write(range.offset, kept);
    write_zeros({range.offset + kept.size(), range.length - kept.size()});
  };
  const KeyOf key_of = [&key](ByteRange) { return as_key(key); };
  co_return placed(co_await put(length, Where::seen, write, key_of), key);
}

// The range in which the process may use a value that has been put. The pool may have been found to
// be damaged meanwhile.
Created PoolCallbacks::placed(Created created, const std::string& key) {
  if (created.status != CallStatus::done) return created;
  const std::optional<ByteRange> value = find(key);
  return value ? Created{CallStatus::done, *value} : Created{CallStatus::refused};
}

bool PoolCallbacks::erase(const std::string& key) { return is_key(key) && erase_item(as_key(key)); }

bool PoolCallbacks::erase_item(Key key) {
  const auto erased = guarded([&](Engine& engine) { return engine.erase(key); });
  if (!erased.value_or(false)) return false;
  pool_->note_erased(key);
  return true;
}

void PoolCallbacks::write_zeros(ByteRange range) const {
  static constexpr std::array<std::byte, 4 * KiB> kZeros{};
  for (Bytes done = 0; done < range.length; done += kZeros.size()) {
    const Bytes length = std::min<Bytes>(kZeros.size(), range.length - done);
    pools_.region().write(range.offset + done, std::span(kZeros).first(length));
  }
}

// --- memory that belongs to no key ---------------------------------------------------------------

Task<Created> PoolCallbacks::put_allocation(Bytes length, Where where, Write write) {
  AllocationKey key;
  const KeyOf key_of = [&key](ByteRange range) -> Key {
    return key = allocation_key(range.offset);
  };
  co_return co_await put(length, where, std::move(write), key_of);
}

Task<Created> PoolCallbacks::allocate(Bytes length) {
  return put_allocation(length, Where::seen, [](ByteRange) {});
}

Task<Created> PoolCallbacks::keep(std::span<const std::byte> bytes) {
  return put_allocation(bytes.size(), Where::anywhere, [this, bytes](ByteRange range) {
    pools_.region().write(range.offset, bytes);
  });
}

bool PoolCallbacks::free(ByteRange range) {
  const AllocationKey key = allocation_key(range.offset);
  return range_of(key) == range && erase_item(key);
}

// --- searching -----------------------------------------------------------------------------------

void PoolCallbacks::for_each(const std::function<void(const std::string&, ByteRange)>& visit) {
  guarded([&](const Engine& engine) {
    engine.iterate([&](Key key, ByteRange value) {
      if (!is_allocation(key)) visit(std::string(text_of(key)), value);
    });
    return true;
  });
}

// Lets other tasks run between parts of the search, as a client's search does.
Task<ado::Callbacks::KeySearchResult> PoolCallbacks::find_key(std::string expression,
                                                              ado::Matching matching,
                                                              std::uint64_t position) {
  using Outcome = index::FindResult::Outcome;
  while (pool_->index) {
    const auto found = pool_->index->find(expression, match_of(matching), position);
    if (found.outcome == Outcome::invalid) break;
    if (found.outcome == Outcome::found) {
      co_return KeySearchResult{CallStatus::done, std::string(text_of(found.key)), found.position};
    }
    if (found.outcome == Outcome::not_found)
      co_return KeySearchResult{CallStatus::not_found, {}, 0};
    position = found.position;
    co_await yield();
  }
  co_return KeySearchResult{CallStatus::refused, {}, 0};
}

ado::PoolInfo PoolCallbacks::info() {
  const EngineStatistics counts = pool_->engine->statistics();
  return {pools_.name_of(*pool_), pool_->limit, counts.items, counts.capacity, counts.free};
}

}  // namespace perdura::systems::mcas
