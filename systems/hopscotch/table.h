// The server's side of the hopscotch hash table: the only one who changes it. One thread, no locks.
//
// A crash between any two stores loses nothing: an entry's key is durable before its word makes it
// exist, a word is stored atomically, and an entry that moves exists twice for a moment, never not
// at all; recover() removes the second copy.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_set>
#include <vector>

#include "platform/pmem/region.h"
#include "services/kv/kv.h"
#include "systems/hopscotch/geometry.h"

namespace perdura::systems::hopscotch {

struct Entry {
  std::uint64_t word = 0;
  std::uint8_t tag = 0;
  std::uint8_t format = kTypicalFormat;
  Bucket bucket = 0;
};

// A word that is odd while an entry moves, and different afterwards. A client that reads it before
// and after a READ of a neighborhood, and finds the same even value, knows that a key it missed was
// not just moving. Normally in DRAM registered for remote reads.
struct DisplacementCounter {
  pmem::Region* region = nullptr;
  Bytes offset = 0;
};

// A system may keep something in the word of an empty entry: words with any of `bits` are empty
// too. `before_reuse` is called with such a word before it is overwritten.
struct VacantWords {
  std::uint64_t bits = 0;
  std::function<void(std::uint64_t word)> before_reuse;
};

class Table {
 public:
  // The table at `offset` (a multiple of 8) of the region. A region of zeros is an empty table.
  Table(pmem::Region& region, Bytes offset, const Geometry& geometry,
        DisplacementCounter counter = {}, VacantWords vacant = {});

  const Geometry& geometry() const { return geometry_; }

  std::optional<Entry> find(const StoredKey& key) const;
  std::optional<Entry> find(Key key) const { return find(geometry_.stored(key)); }

  // Adds a key that is not in the table: key, tag and format first, each only if it differs from
  // what is there, then the word (not 0), which is one atomic store. `out_of_space` if no bucket of
  // the neighborhood can be emptied by moving entries; then nothing has changed.
  Result<Bucket> insert(const StoredKey& key, std::uint8_t tag, std::uint64_t word,
                        const pmem::WordLayout& layout = pmem::kWholeWord);
  Result<Bucket> insert(Key key, std::uint8_t tag, std::uint64_t word,
                        const pmem::WordLayout& layout = pmem::kWholeWord) {
    return insert(geometry_.stored(key), tag, word, layout);
  }

  // The same in two steps. A reserved bucket is empty for readers and kept for whoever reserved it,
  // who fills it, or releases it. Reservations are not persistent.
  Result<Bucket> reserve(const StoredKey& key);
  Result<Bucket> reserve(Key key) { return reserve(geometry_.stored(key)); }
  void fill(Bucket reserved, const StoredKey& key, std::uint8_t tag, std::uint64_t word,
            const pmem::WordLayout& layout = pmem::kWholeWord);
  void fill(Bucket reserved, Key key, std::uint8_t tag, std::uint64_t word,
            const pmem::WordLayout& layout = pmem::kWholeWord) {
    fill(reserved, geometry_.stored(key), tag, word, layout);
  }
  void release(Bucket reserved) { reserved_.erase(reserved); }

  void set_word(Bucket bucket, std::uint64_t word,
                const pmem::WordLayout& layout = pmem::kWholeWord);
  // Removes an entry: the word becomes 0, or another word that means empty; then the key's bytes
  // become 0, and the tag and format if they are not.
  void clear(Bucket bucket, std::uint64_t vacant_word = 0);

  // Calls `visit(entry, key bytes in the slot)` for every entry, in the order of buckets. It may
  // set or clear the entry.
  template <class Visit>
  void for_each(Visit visit) const {
    std::vector<std::byte> bytes(geometry_.stride());
    for (Bucket bucket = 0; bucket < geometry_.entries(); ++bucket) {
      if (is_vacant(word_of(bucket))) continue;
      const EntryHead head = read_entry(bucket, bytes);
      visit(Entry{head.word, head.tag, head.format, bucket}, stored_bytes(head, bytes));
    }
  }

  // Calls `visit(word)` for the word of every empty entry.
  template <class Visit>
  void for_each_vacant_word(Visit visit) const {
    for (Bucket bucket = 0; bucket < geometry_.entries(); ++bucket) {
      const std::uint64_t word = word_of(bucket);
      if (is_vacant(word)) visit(word);
    }
  }

  // After a crash: removes the second copy of an entry that was moving. Returns how many there
  // were.
  std::uint64_t recover();

 private:
  // A move of an entry into an empty bucket.
  struct Move {
    Bucket from = 0;
    Bucket to = 0;
  };

  Bytes at(Bucket bucket) const { return offset_ + geometry_.offset_of(bucket); }
  std::uint64_t word_of(Bucket bucket) const { return region_.load(at(bucket) + kWordOffset); }
  EntryHead read_entry(Bucket bucket, std::span<std::byte> into) const;
  std::span<const std::byte> stored_bytes(const EntryHead& head,
                                          std::span<const std::byte> entry) const {
    return entry.subspan(kKeyOffset, geometry_.used(head.format));
  }
  bool is_vacant(std::uint64_t word) const { return word == 0 || (word & vacant_.bits) != 0; }
  bool available(Bucket bucket) const {
    return is_vacant(word_of(bucket)) && !reserved_.contains(bucket);
  }

  std::optional<Bucket> empty_bucket(Bucket home) const;
  std::vector<Move> plan_moves(Bucket home) const;
  void move(Move step);
  void write_key(Bucket bucket, std::uint8_t tag, std::uint8_t format,
                 std::span<const std::byte> stored);
  void announce_reuse(Bucket bucket);
  void write_changed(Bytes offset, std::span<const std::byte> bytes);
  void count_displacement();

  pmem::Region& region_;
  Bytes offset_;
  Geometry geometry_;
  DisplacementCounter counter_;
  VacantWords vacant_;
  std::unordered_set<Bucket> reserved_;
  mutable std::vector<std::byte> neighborhood_;  // scratch of find()
  std::vector<std::byte> scratch_;               // of an entry
  std::vector<std::byte> zeros_;                 // of a key slot
};

}  // namespace perdura::systems::hopscotch
