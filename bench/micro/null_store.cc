#include "bench/micro/null_store.h"

#include <bit>
#include <cstring>

namespace perdura::bench {

using systems::Error;
using systems::Key;
using systems::Result;
using systems::Value;

namespace {

std::uint64_t name_of(Key key) {
  std::uint64_t name;
  std::memcpy(&name, key.data() + key.size() - sizeof name, sizeof name);
  return name;
}

}  // namespace

// At most half full, so that a key is found at the first look or next to it.
NullSession::NullSession(std::uint64_t records, Bytes value_size)
    : free_records_(records),
      value_size_(value_size),
      shift_(63 - std::bit_width(records)),
      names_(std::size_t{1} << (64 - shift_), kFree),
      values_(names_.size() * value_size) {}

std::size_t NullSession::slot_of(std::uint64_t name) const {
  std::size_t slot = (name * 0x9E3779B97F4A7C15) >> shift_;
  while (names_[slot] != name && names_[slot] != kFree) slot = (slot + 1) & (names_.size() - 1);
  return slot;
}

Task<Result<Bytes>> NullSession::get(Key key, std::span<std::byte> into) {
  const std::size_t slot = slot_of(name_of(key));
  if (names_[slot] == kFree) co_return tl::unexpected(Error::not_found);
  if (into.size() < value_size_) co_return tl::unexpected(Error::too_large);
  copy_value(into.data(), value_at(slot));
  co_return value_size_;
}

Task<Result<void>> NullSession::put(Key key, Value value) {
  if (value.size() != value_size_) co_return tl::unexpected(Error::too_large);
  const std::uint64_t name = name_of(key);
  const std::size_t slot = slot_of(name);
  if (names_[slot] == kFree) {
    if (free_records_ == 0) co_return tl::unexpected(Error::out_of_space);
    --free_records_;
    names_[slot] = name;
  }
  copy_value(value_at(slot), value.data());
  co_return Result<void>();
}

// Nothing that runs on it deletes: a hole would end the search for its neighbors.
Task<Result<void>> NullSession::erase(Key) { co_return tl::unexpected(Error::not_found); }

}  // namespace perdura::bench
