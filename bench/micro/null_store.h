// A key-value store that costs next to nothing, for measuring what drives stores: a session is a
// table in its client's memory. A get looks the key up and copies the value out, a put copies it
// in; nothing is sent, nobody serves, sessions share nothing. So every value that is read verifies,
// and the latency of an operation is what the harness adds to any store's.
#pragma once

#include <cstring>
#include <vector>

#include "systems/kv.h"

namespace perdura::bench {

// Keys have at least 8 bytes and differ in their last 8, which are not all zero; values have one
// size, a multiple of 8 bytes. Holds `records` of them; one more is `out_of_space`, a value of
// another size `too_large`.
class NullSession final : public systems::KvSession {
 public:
  NullSession(std::uint64_t records, Bytes value_size);

  Task<systems::Result<Bytes>> get(systems::Key key, std::span<std::byte> into) override;
  Task<systems::Result<void>> put(systems::Key key, systems::Value value) override;
  Task<systems::Result<void>> erase(systems::Key key) override;
  systems::SessionCounts counts() const override { return {}; }

 private:
  static constexpr std::uint64_t kFree = 0;

  // Where the key is, or where it would be.
  std::size_t slot_of(std::uint64_t name) const;
  void copy_value(std::byte* to, const std::byte* from) const {
    for (Bytes i = 0; i < value_size_; i += kWord) std::memcpy(to + i, from + i, kWord);
  }
  std::byte* value_at(std::size_t slot) { return values_.data() + slot * value_size_; }

  std::uint64_t free_records_;
  Bytes value_size_;
  int shift_;                         // leaves as many bits of a product as number the slots
  std::vector<std::uint64_t> names_;  // of the slots: their keys' last 8 bytes
  std::vector<std::byte> values_;
};

}  // namespace perdura::bench
