// A key-value store that costs next to nothing, for measuring what drives stores: a session is a
// table in its client's memory. A get looks the key up and copies the value out, a put copies it
// in; nothing is sent, nobody serves, sessions share nothing. So every value that is read verifies,
// and the latency of an operation is what the harness adds to any store's.
#pragma once

#include <cstdint>
#include <vector>

#include "services/kv/kv.h"

namespace perdura::bench {

// Keys differ in their last 8 bytes, or in all if they have fewer, as those of a workload do.
// Holds `records` of them, of which erased ones are some; one more is `out_of_space`, a value of
// more than `max_value_size` bytes `too_large`.
class NullSession final : public systems::KvSession {
 public:
  NullSession(std::uint64_t records, Bytes max_value_size);

  Task<systems::Result<Bytes>> get(systems::Key key, std::span<std::byte> into) override;
  Task<systems::Result<void>> put(systems::Key key, systems::Value value) override;
  Task<systems::Result<void>> erase(systems::Key key) override;
  systems::SessionCounts counts() const override { return {}; }

 private:
  enum class State : std::uint32_t { free, erased, stored };
  struct Slot {
    std::uint64_t name = 0;  // the key's last 8 bytes
    State state = State::free;
    std::uint32_t length = 0;  // of the value
    std::size_t record = 0;    // where the value is
  };

  // Where the key is, or where it would be.
  Slot& slot_of(std::uint64_t name);
  std::byte* value_of(const Slot& slot) { return values_.data() + slot.record * max_value_size_; }

  std::uint64_t free_records_;
  Bytes max_value_size_;
  int shift_;  // leaves as many bits of a product as number the slots
  std::vector<Slot> slots_;
  std::vector<std::byte> values_;
};

}  // namespace perdura::bench
