#include "services/kv/recorder.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <stdexcept>

#include "platform/base/error.h"

namespace perdura::kv {
namespace {

history::Outcome outcome_of(history::Kind kind, Error error) {
  switch (error) {
    case Error::not_found:
      return kind == history::Kind::put ? history::Outcome::unknown : history::Outcome::not_found;
    case Error::out_of_space:
    case Error::too_large:
      return history::Outcome::refused;
    case Error::corrupt:
      return kind == history::Kind::get ? history::Outcome::torn : history::Outcome::unknown;
    case Error::disconnected:
      break;
  }
  return history::Outcome::unknown;
}

// In memory that other processes may read, an entry must be written before the count includes it.
template <class T>
void publish(T& place, T value) {
  std::atomic_ref<T>(place).store(value, std::memory_order_release);
}

}  // namespace

std::size_t OperationLog::bytes_for(std::size_t capacity) {
  return sizeof(Header) + capacity * sizeof(history::Operation);
}

OperationLog::OperationLog(std::span<std::byte> memory) {
  if (memory.size() < sizeof(Header)) throw PlatformError("the memory for a history is too small");
  header_ = std::launder(reinterpret_cast<Header*>(memory.data()));
  entries_ = {std::launder(reinterpret_cast<history::Operation*>(memory.data() + sizeof(Header))),
              (memory.size() - sizeof(Header)) / sizeof(history::Operation)};
}

std::vector<history::Operation> OperationLog::read(std::span<const std::byte> memory) {
  const auto* header = std::launder(reinterpret_cast<const Header*>(memory.data()));
  const auto* entries =
      std::launder(reinterpret_cast<const history::Operation*>(memory.data() + sizeof(Header)));
  auto& count = const_cast<std::uint64_t&>(header->count);  // the field is only read
  const std::uint64_t size = std::atomic_ref(count).load(std::memory_order_acquire);
  return {entries, entries + size};
}

std::size_t OperationLog::begin(const history::Operation& operation) {
  if (header_ == nullptr) {
    own_.push_back(operation);
    return own_.size() - 1;
  }
  const std::uint64_t index = header_->count;
  if (index == entries_.size()) {
    throw PlatformError("the memory for a history is full; record fewer operations");
  }
  entries_[index] = operation;
  publish(header_->count, index + 1);
  return index;
}

void OperationLog::complete(std::size_t index, std::uint64_t version, Time end,
                            history::Outcome outcome) {
  history::Operation& entry = header_ == nullptr ? own_[index] : entries_[index];
  entry.version = version;
  entry.end = end;
  publish(entry.outcome, outcome);
}

std::span<const history::Operation> OperationLog::operations() const {
  if (header_ == nullptr) return own_;
  return entries_.first(header_->count);
}

std::size_t RecordedSession::begin(history::Kind kind, Key key, std::uint64_t version) {
  Time start = Executor::current().now();
  if (last_end_ != Time::min()) start = std::max(start, last_end_ + Picoseconds(1));
  return log_.begin({.key = format_.key_number(key),
                     .version = version,
                     .start = start,
                     .client = client_,
                     .kind = kind});
}

void RecordedSession::end(std::size_t index, std::uint64_t version, history::Outcome outcome,
                          Time when) {
  const Time end = std::max(when, log_.operations()[index].start);
  last_end_ = std::max(last_end_, end);
  log_.complete(index, version, end, outcome);
}

Task<Result<Bytes>> RecordedSession::get(Key key, std::span<std::byte> into) {
  const std::size_t index = begin(history::Kind::get, key, 0);
  const auto got = co_await session_.get(key, into);
  const Time answered = Executor::current().now();  // before the value is examined, which must not
                                                    // count
  if (!got) {
    end(index, 0, outcome_of(history::Kind::get, got.error()), answered);
    co_return got;
  }
  const auto version =
      *got <= into.size() ? format_.version(key, Value(into.first(*got))) : std::nullopt;
  end(index, version.value_or(0), version ? history::Outcome::ok : history::Outcome::torn,
      answered);
  co_return got;
}

Task<Result<void>> RecordedSession::put(Key key, Value value) {
  const auto version = format_.version(key, value);
  if (!version) throw std::invalid_argument("a value to be recorded does not tell its version");
  const std::size_t index = begin(history::Kind::put, key, *version);
  const auto stored = co_await session_.put(key, value);
  end(index, *version,
      stored ? history::Outcome::ok : outcome_of(history::Kind::put, stored.error()),
      Executor::current().now());
  co_return stored;
}

Task<Result<void>> RecordedSession::erase(Key key) {
  const std::size_t index = begin(history::Kind::erase, key, 0);
  const auto erased = co_await session_.erase(key);
  end(index, 0, erased ? history::Outcome::ok : outcome_of(history::Kind::erase, erased.error()),
      Executor::current().now());
  co_return erased;
}

}  // namespace perdura::kv
