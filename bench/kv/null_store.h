// A key-value store of almost no cost, for measuring the overhead of the harness. A session is a
// table in its client's memory: a get looks the key up and copies the value out, a put copies it
// in. Nothing is sent, there is no server, and sessions share nothing. Every value that is read
// verifies, and the latency of an operation is what the harness adds to that of any store.
#pragma once

#include <cstdint>
#include <vector>

#include "services/kv/kv.h"

namespace perdura::bench {

// Keys must differ in their last 8 bytes (in all bytes if they are shorter), as a workload's keys
// do. Holds up to `records` keys, erased ones included. A put of a further key fails with
// `out_of_space`, one of a value of more than `max_value_size` bytes with `too_large`.
class NullSession final : public kv::KvSession {
 public:
  NullSession(std::uint64_t records, Bytes max_value_size);

  Task<kv::Result<Bytes>> get(kv::Key key, std::span<std::byte> into) override;
  Task<kv::Result<void>> put(kv::Key key, kv::Value value) override;
  Task<kv::Result<void>> erase(kv::Key key) override;
  kv::SessionCounts counts() const override { return {}; }

 private:
  enum class State : std::uint32_t { free, erased, stored };
  struct Slot {
    std::uint64_t name = 0;  // the key's last 8 bytes
    State state = State::free;
    std::uint32_t length = 0;  // length of the value
    std::size_t record = 0;    // where the value is
  };

  // The slot that holds the key, or the free one where it would go.
  Slot& slot_of(std::uint64_t name);
  std::byte* value_of(const Slot& slot) { return values_.data() + slot.record * max_value_size_; }

  std::uint64_t free_records_;
  Bytes max_value_size_;
  int shift_;  // shift of multiplicative hashing: leaves as many high bits as index the slots
  std::vector<Slot> slots_;
  std::vector<std::byte> values_;
};

}  // namespace perdura::bench
