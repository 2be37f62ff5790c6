#include "services/kv/recorder.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <stdexcept>

#include "platform/base/error.h"

namespace perdura::history {
namespace {

using systems::Error;

Outcome outcome_of(Kind kind, Error error) {
  switch (error) {
    case Error::not_found:
      return kind == Kind::put ? Outcome::unknown : Outcome::not_found;
    case Error::out_of_space:
    case Error::too_large:
      return Outcome::refused;
    case Error::corrupt:
      return kind == Kind::get ? Outcome::torn : Outcome::unknown;
    case Error::disconnected:
      break;
  }
  return Outcome::unknown;
}

// In memory that other processes may read, an entry must be written before the count includes it.
template <class T>
void publish(T& place, T value) {
  std::atomic_ref<T>(place).store(value, std::memory_order_release);
}

}  // namespace

std::size_t OperationLog::bytes_for(std::size_t capacity) {
  return sizeof(Header) + capacity * sizeof(Operation);
}

OperationLog::OperationLog(std::span<std::byte> memory) {
  if (memory.size() < sizeof(Header)) throw PlatformError("the memory for a history is too small");
  header_ = std::launder(reinterpret_cast<Header*>(memory.data()));
  entries_ = {std::launder(reinterpret_cast<Operation*>(memory.data() + sizeof(Header))),
              (memory.size() - sizeof(Header)) / sizeof(Operation)};
}

std::vector<Operation> OperationLog::read(std::span<const std::byte> memory) {
  const auto* header = std::launder(reinterpret_cast<const Header*>(memory.data()));
  const auto* entries =
      std::launder(reinterpret_cast<const Operation*>(memory.data() + sizeof(Header)));
  auto& count = const_cast<std::uint64_t&>(header->count);  // the field is only read
  const std::uint64_t size = std::atomic_ref(count).load(std::memory_order_acquire);
  return {entries, entries + size};
}

std::size_t OperationLog::begin(const Operation& operation) {
  if (header_ == nullptr) {
    own_.push_back(operation);
    return own_.size() - 1;
  }
  const std::uint64_t place = header_->count;
  if (place == entries_.size()) {
    throw PlatformError("the memory for a history is full; record fewer operations");
  }
  entries_[place] = operation;
  publish(header_->count, place + 1);
  return place;
}

void OperationLog::complete(std::size_t place, std::uint64_t version, Time end, Outcome outcome) {
  Operation& entry = header_ == nullptr ? own_[place] : entries_[place];
  entry.version = version;
  entry.end = end;
  publish(entry.outcome, outcome);
}

std::span<const Operation> OperationLog::operations() const {
  if (header_ == nullptr) return own_;
  return entries_.first(header_->count);
}

std::size_t RecordedSession::begin(Kind kind, systems::Key key, std::uint64_t version) {
  Time start = Executor::current().now();
  if (last_end_ != Time::min()) start = std::max(start, last_end_ + Picoseconds(1));
  return log_.begin({.key = format_.key_number(key),
                     .version = version,
                     .start = start,
                     .client = client_,
                     .kind = kind});
}

void RecordedSession::end(std::size_t place, std::uint64_t version, Outcome outcome, Time when) {
  const Time end = std::max(when, log_.operations()[place].start);
  last_end_ = std::max(last_end_, end);
  log_.complete(place, version, end, outcome);
}

Task<systems::Result<Bytes>> RecordedSession::get(systems::Key key, std::span<std::byte> into) {
  const std::size_t place = begin(Kind::get, key, 0);
  const auto got = co_await session_.get(key, into);
  const Time answered = Executor::current().now();  // before the value is examined, which must not
                                                    // count
  if (!got) {
    end(place, 0, outcome_of(Kind::get, got.error()), answered);
    co_return got;
  }
  const auto version =
      *got <= into.size() ? format_.version(key, systems::Value(into.first(*got))) : std::nullopt;
  end(place, version.value_or(0), version ? Outcome::ok : Outcome::torn, answered);
  co_return got;
}

Task<systems::Result<void>> RecordedSession::put(systems::Key key, systems::Value value) {
  const auto version = format_.version(key, value);
  if (!version) throw std::invalid_argument("a value to be recorded does not tell its version");
  const std::size_t place = begin(Kind::put, key, *version);
  const auto stored = co_await session_.put(key, value);
  end(place, *version, stored ? Outcome::ok : outcome_of(Kind::put, stored.error()),
      Executor::current().now());
  co_return stored;
}

Task<systems::Result<void>> RecordedSession::erase(systems::Key key) {
  const std::size_t place = begin(Kind::erase, key, 0);
  const auto erased = co_await session_.erase(key);
  end(place, 0, erased ? Outcome::ok : outcome_of(Kind::erase, erased.error()),
      Executor::current().now());
  co_return erased;
}

}  // namespace perdura::history
