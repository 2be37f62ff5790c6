#include "bench/kv/null_store.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "services/kv/short_copy.h"

namespace perdura::bench {

using kv::Error;
using kv::Key;
using kv::Result;
using kv::Value;

namespace {

std::uint64_t name_of(Key key) {
  const std::size_t length = std::min(key.size(), sizeof(std::uint64_t));
  return kv::load_short(key.data() + key.size() - length, length);
}

// Copies word by word, so that a short value needs no call of memcpy.
void copy_value(std::byte* to, const std::byte* from, Bytes length) {
  Bytes i = 0;
  for (; i + kWord <= length; i += kWord) std::memcpy(to + i, from + i, kWord);
  if (i < length) kv::store_short(to + i, kv::load_short(from + i, length - i), length - i);
}

}  // namespace

// The load factor is at most one half, so that a key is found in its home slot or close to it.
NullSession::NullSession(std::uint64_t records, Bytes max_value_size)
    : free_records_(records),
      max_value_size_(max_value_size),
      shift_(63 - std::bit_width(records)),
      slots_(std::size_t{1} << (64 - shift_)),
      values_(records * max_value_size) {}

NullSession::Slot& NullSession::slot_of(std::uint64_t name) {
  std::size_t index = (name * 0x9E3779B97F4A7C15) >> shift_;
  while (slots_[index].name != name && slots_[index].state != State::free) {
    index = (index + 1) & (slots_.size() - 1);
  }
  return slots_[index];
}

Task<Result<Bytes>> NullSession::get(Key key, std::span<std::byte> into) {
  Slot& slot = slot_of(name_of(key));
  if (slot.state != State::stored) co_return tl::unexpected(Error::not_found);
  if (into.size() < slot.length) co_return tl::unexpected(Error::too_large);
  copy_value(into.data(), value_of(slot), slot.length);
  co_return Bytes{slot.length};
}

Task<Result<void>> NullSession::put(Key key, Value value) {
  if (value.size() > max_value_size_) co_return tl::unexpected(Error::too_large);
  const std::uint64_t name = name_of(key);
  Slot& slot = slot_of(name);
  if (slot.state == State::free) {
    if (free_records_ == 0) co_return tl::unexpected(Error::out_of_space);
    slot.name = name;
    slot.record = --free_records_;
  }
  slot.state = State::stored;
  slot.length = static_cast<std::uint32_t>(value.size());
  copy_value(value_of(slot), value.data(), value.size());
  co_return Result<void>();
}

// The slot stays assigned to the key: a free slot would end the probe sequences that pass it.
Task<Result<void>> NullSession::erase(Key key) {
  Slot& slot = slot_of(name_of(key));
  if (slot.state != State::stored) co_return tl::unexpected(Error::not_found);
  slot.state = State::erased;
  co_return Result<void>();
}

}  // namespace perdura::bench
