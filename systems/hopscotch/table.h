// The server's side of the hopscotch hash table. Only the server changes the table, on one thread
// and without locks.
//
// The table is crash-consistent between any two stores. The key of a new entry is durable before
// its word makes the entry exist, words are stored atomically, and an entry that moves is copied
// before it is deleted. recover() removes the second copy if a crash came in between.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "platform/pmem/region.h"
#include "services/kv/kv.h"
#include "systems/hopscotch/geometry.h"

namespace perdura::systems::hopscotch {

struct TableEntry {
  std::uint64_t word = 0;
  std::uint8_t tag = 0;
  std::uint8_t format = kTypicalFormat;
  Bucket bucket = 0;
};

// Tells clients whether an entry was moving while they read: a word that is odd while entries move,
// and that has another value afterwards. A client reads it before and after it READs a
// neighborhood. If both values are equal and even, a key that it did not find was not being moved.
// Normally in DRAM that is registered for remote reads.
struct DisplacementCounter {
  pmem::Region* region = nullptr;
  Bytes offset = 0;
};

// A system may use the word of an empty entry for a note of its own: a word with any of `bits` set
// is empty, too. `before_reuse` is called with such a word before it is overwritten.
struct VacantWords {
  std::uint64_t bits = 0;
  std::function<void(std::uint64_t word)> before_reuse;
};

class Table {
 public:
  // Places the table at `offset` (a multiple of 8) of the region. Memory of zeros is an empty
  // table.
  Table(pmem::Region& region, Bytes offset, const Geometry& geometry,
        DisplacementCounter counter = {}, VacantWords vacant = {});

  const Geometry& geometry() const { return geometry_; }

  std::optional<TableEntry> find(const StoredKey& key) const;
  std::optional<TableEntry> find(kv::Key key) const { return find(geometry_.stored(key)); }

  // Adds a key that is not in the table. Writes the key, the tag and the format first, each only if
  // it differs from what is there, then the word (not 0) by one atomic store. The error is
  // `out_of_space` if no bucket of the neighborhood can be made free by moving entries; nothing has
  // changed then.
  kv::Result<Bucket> insert(const StoredKey& key, std::uint8_t tag, std::uint64_t word,
                            const pmem::WordLayout& layout = pmem::kWholeWord);
  kv::Result<Bucket> insert(kv::Key key, std::uint8_t tag, std::uint64_t word,
                            const pmem::WordLayout& layout = pmem::kWholeWord) {
    return insert(geometry_.stored(key), tag, word, layout);
  }

  // insert() in two steps. A reserved bucket looks empty to readers; the caller must fill or
  // release it. Reservations are volatile.
  kv::Result<Bucket> reserve(const StoredKey& key);
  kv::Result<Bucket> reserve(kv::Key key) { return reserve(geometry_.stored(key)); }
  void fill(Bucket reserved, const StoredKey& key, std::uint8_t tag, std::uint64_t word,
            const pmem::WordLayout& layout = pmem::kWholeWord);
  void fill(Bucket reserved, kv::Key key, std::uint8_t tag, std::uint64_t word,
            const pmem::WordLayout& layout = pmem::kWholeWord) {
    fill(reserved, geometry_.stored(key), tag, word, layout);
  }
  void release(Bucket reserved) { reserved_.erase(reserved); }

  void set_word(Bucket bucket, std::uint64_t word,
                const pmem::WordLayout& layout = pmem::kWholeWord);
  // Removes an entry. Its word becomes 0, or `vacant_word`, which must mean empty. Then the bytes
  // of the key, the tag and the format become 0.
  void clear(Bucket bucket, std::uint64_t vacant_word = 0);

  // Calls `visit(entry, bytes of the key slot)` for every entry, in the order of buckets. `visit`
  // may change the entry's word or clear the entry.
  template <class Visit>
  void for_each(Visit visit) const {
    std::vector<std::byte> bytes(geometry_.stride());
    for (Bucket bucket = 0; bucket < geometry_.entries(); ++bucket) {
      if (is_vacant(word_of(bucket))) continue;
      const EntryHead head = read_entry(bucket, bytes);
      visit(TableEntry{head.word, head.tag, head.format, bucket}, stored_bytes(head, bytes));
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

  // After a crash: removes the second copies of entries that were being moved. Returns the number
  // of removed copies.
  std::uint64_t recover();
  // Describes an entry that no search finds, or that exists twice, as a phrase; "" if there is
  // none.
  std::string audit() const;

  // Counts since the table was opened: entries moved to make room, and second copies removed by
  // recover().
  std::uint64_t movements() const { return movements_; }
  std::uint64_t removed_copies() const { return removed_copies_; }

 private:
  // The movement of one entry into an empty bucket.
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
  std::uint64_t movements_ = 0;
  std::uint64_t removed_copies_ = 0;
  mutable std::vector<std::byte> neighborhood_;  // buffer of find()
  std::vector<std::byte> scratch_;               // buffer for an entry
  std::vector<std::byte> zeros_;                 // as many zeros as a key slot has bytes
};

}  // namespace perdura::systems::hopscotch
