// The operations of Erda's server on persistent memory (Liu et al., sections 4.1, 4.2 and 4.4): the
// entries of the hash table and the logs that they point to. It knows neither clients nor messages.
//
// The server's worker thread and its cleaner thread share a store. Each must hold its lock during
// calls.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "platform/runtime/sync.h"
#include "services/kv/kv.h"
#include "systems/erda/layout.h"
#include "systems/erda/protocol.h"
#include "systems/erda/scratch.h"
#include "systems/erda/space.h"
#include "systems/hopscotch/table.h"

namespace perdura::systems::erda {

class Store {
 public:
  // Creates the pool, or opens and recovers it. Throws UsageError if it is damaged or has another
  // shape.
  Store(Node& node, const std::string& name, const kv::KvConfig& config,
        hopscotch::DisplacementCounter displacements);

  SpinLock& lock() { return lock_; }
  pmem::Region& pool() { return *pool_; }
  const PoolLayout& layout() const { return layout_; }
  const ObjectFormat& format() const { return format_; }
  Space& space() { return space_; }
  const Space& space() const { return space_; }
  hopscotch::Table& table() { return table_; }
  const hopscotch::Table& table() const { return table_; }
  // A buffer for reading objects; each thread has its own.
  Scratch make_scratch() const { return Scratch(layout_.shape().segment_bytes); }

  // --- versions (unless the head is being cleaned, both versions of an entry are in Region 1)

  // The object at a position, if there is a complete one. The result refers to `scratch`.
  std::optional<ObjectFormat::Object> read(const Log& log, Position position, Scratch& scratch);
  // The newest complete version of a key, from the region that the head's phase prescribes (section
  // 4.4).
  std::optional<ObjectFormat::Object> read_newest(const hopscotch::TableEntry& entry,
                                                  Scratch& scratch);
  bool is_whole(std::uint8_t head, Position position, Scratch& scratch) {
    return read(space_.region_1(head), position, scratch).has_value();
  }
  // Section 4.2: the newest version is incomplete, so the previous one replaces it. If there is
  // none, the key is removed.
  void restore(const hopscotch::TableEntry& entry);
  // True if a version was written before the server last started, and has not been verified since.
  bool unverified(std::uint8_t head, Position position) const {
    return position < unverified_before_[head - 1];
  }

  // --- writing

  struct Begun {
    Outcome outcome = Outcome::ok;
    Position position;
  };
  // Sections 3.3 and 4.1: allocates space and makes the entry point to it by one atomic store; the
  // client writes the object afterwards. Must not be called while the head is being cleaned.
  Begun begin_version(bool erase, const hopscotch::StoredKey& key,
                      const std::optional<hopscotch::TableEntry>& entry, Bytes object_size,
                      Scratch& scratch);
  // Makes durable an object that a client wrote to the position that begin_version() returned.
  void persist_written(std::uint8_t head, Position position, Bytes size);
  // Section 4.4: the server itself writes the object, which the client sent sealed for life 0, and
  // then the entry. The phase of the head determines the region. Durable when it returns.
  Outcome write_version(bool erase, const hopscotch::StoredKey& key,
                        const std::optional<hopscotch::TableEntry>& entry,
                        std::span<std::byte> object, Scratch& scratch);

  // --- log cleaning, object by object (called by the Cleaner)

  // The entry for the key of the object at a position, whether that version is live or stale;
  // nullopt if there is no object.
  std::optional<hopscotch::TableEntry> entry_of(std::uint8_t head, const Log& log,
                                                Position position, Scratch& scratch);
  // Merging: copies the object at a position of Region 1 to Region 2 if it is the newest version of
  // its key, or removes the key if that version is a deletion. Returns false if there is no space.
  bool merge_object(std::uint8_t head, Position position, Scratch& scratch);
  // Merging, after merge_object() for all objects: restores the entries whose newest version was
  // never written because the server died first, so that nothing at its position reveals the key.
  // Returns the positions of the previous versions, which are the newest now and remain to be
  // merged.
  std::vector<Position> restore_unwritten(std::uint8_t head, Scratch& scratch);
  // Replicating: like merge_object(), into the reserved part, whose space before `to` is taken.
  // Returns the new end of the taken space.
  Position replicate_object(std::uint8_t head, Position position, Position to, Scratch& scratch);
  // Switching: flips the tag of the key whose copy is at this position.
  void switch_object(std::uint8_t head, Position position, Scratch& scratch);
  // Drops all copies and leaves Region 1 as it was. Only allowed while merging.
  void abandon_cleaning(std::uint8_t head);
  void end_cleaning(std::uint8_t head);

  // --- recovery.cc

  // Counts of the actions of recovery.
  struct Recovered {
    std::uint64_t abandoned_cleanings = 0;
    std::uint64_t completed_cleanings = 0;
    std::uint64_t restored_versions = 0;
  };
  const Recovered& recovered() const { return recovered_; }
  // After recovery: describes a contradiction in the store, as a phrase; "" if there is none.
  std::string audit() const;

 private:
  static std::unique_ptr<pmem::Region> open_pool(Node& node, const std::string& name,
                                                 const Superblock& shape);
  // recovery.cc
  void recover();
  void check_entries() const;
  void finish_cleaning(std::uint8_t head, Scratch& scratch);
  void finish_replicating(std::uint8_t head, Scratch& scratch);
  void resume_log(std::uint8_t head, Scratch& scratch);
  template <class Visit>
  void for_each_of(std::uint8_t head, Visit visit) const {
    table_.for_each([&](const hopscotch::TableEntry& entry, std::span<const std::byte>) {
      if (entry.tag == head) visit(entry);
    });
  }

  // True if a reader would find a value.
  bool has_value(const hopscotch::TableEntry& entry, Scratch& scratch);
  // Durably makes remains at a position unreadable, before an entry refers to it.
  void erase_remains(const Log& log, Position position);
  // Makes durable a version that a client wrote, if it is complete.
  void persist(const Log& log, Position position, Scratch& scratch);
  // The position after an object that has been read.
  Position position_behind(Position position, const Scratch& object) const;
  void write_object(const Log& log, Position position, std::span<std::byte> object,
                    std::uint32_t sealed_for);
  void set_word(const hopscotch::TableEntry& entry, VersionWord word) {
    table_.set_word(entry.bucket, word.raw(), kVersionLayout);
  }

  PoolLayout layout_;
  ObjectFormat format_;
  std::unique_ptr<pmem::Region> pool_;
  hopscotch::Table table_;
  Space space_;
  SpinLock lock_;
  bool persist_before_update_;
  // By head - 1.
  std::vector<Position> unverified_before_;
  // The ends of the regions that were linked when the server started. Space before that, and after
  // the last object to which an entry refers, may hold a whole object of the same life: one that
  // was written before the server died, and whose entry was not updated in time or has been
  // removed.
  std::vector<Position> remains_before_;
  Recovered recovered_;
};

}  // namespace perdura::systems::erda
