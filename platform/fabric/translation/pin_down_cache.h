// The cache of a NIC for entries of its tables of translations, which is called its pin-down cache:
// which entries it holds, without any times ("Building Distributed Systems with Non-Volatile Main
// Memories and RDMA Networks", sections 2.4.2 and 5.2).
//
// The cache is set-associative with LRU replacement in each set, as in the emulation there and in
// real translation caches; consecutive pages map to consecutive sets. The thesis does not say which
// set holds a range; here it is the set of the page in which the range begins. A look-up takes time
// in proportion to the number of ways.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "platform/base/units.h"

namespace perdura::fabric {

// Names an entry: its table and its number there.
struct TranslationId {
  std::uint64_t table = 0;
  std::uint64_t number = 0;
  friend bool operator==(const TranslationId&, const TranslationId&) = default;

  // The entry of the range that begins at this byte of the registration.
  static TranslationId of_range(std::uint64_t table, Bytes at);
};

class PinDownCache {
 public:
  struct Access {
    bool hit = false;
    std::size_t slot = 0;  // where the entry is now, below entries()
  };

  // `entries` is a positive multiple of `ways`.
  PinDownCache(std::uint32_t entries, std::uint32_t ways);

  std::size_t entries() const { return slots_.size(); }
  // Looks an entry up. If it is not cached, it replaces the one of its set that was used least
  // recently.
  Access access(const TranslationId& id);
  // Drop entries that have changed: one of them, those from `first` to `last` of a table.
  void forget(const TranslationId& id);
  void forget(std::uint64_t table, std::uint64_t first, std::uint64_t last);
  void forget_table(std::uint64_t table) { forget(table, 0, ~std::uint64_t{0}); }

  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }

 private:
  struct Slot {
    TranslationId id{};
    std::uint64_t used = 0;  // when it was used last; 0: free
  };
  std::size_t set_of(const TranslationId& id) const;  // its first slot

  std::uint32_t ways_;
  std::vector<Slot> slots_;  // a set's are adjacent
  std::uint64_t uses_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace perdura::fabric
