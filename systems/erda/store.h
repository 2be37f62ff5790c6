// What Erda's server does in persistent memory (Liu et al., sections 4.1, 4.2 and 4.4): the entries
// of the hash table and the logs that they point to. It knows nothing of clients and messages.
//
// The server's worker thread and its cleaner thread share a store; each holds the lock while it
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
  // Creates the pool, or opens and recovers it. Throws UsageError if it is damaged or of another
  // shape.
  Store(Node& node, const std::string& name, const KvConfig& config,
        hopscotch::DisplacementCounter displacements);

  SpinLock& lock() { return lock_; }
  pmem::Region& pool() { return *pool_; }
  const PoolLayout& layout() const { return layout_; }
  const ObjectFormat& format() const { return format_; }
  Space& space() { return space_; }
  const Space& space() const { return space_; }
  hopscotch::Table& table() { return table_; }
  // Where an object is read to; each thread has its own.
  Scratch make_scratch() const { return Scratch(layout_.shape().segment_bytes); }

  // --- versions (outside of cleaning an entry's are both in Region 1)

  // An object, if there is a whole one at the place. It refers to `scratch`.
  std::optional<ObjectFormat::Object> read(const Log& log, Position position, Scratch& scratch);
  // The newest whole version of a key, wherever the phase of its head has it (section 4.4).
  std::optional<ObjectFormat::Object> read_newest(const hopscotch::Entry& entry, Scratch& scratch);
  bool is_whole(std::uint8_t head, Position position, Scratch& scratch) {
    return read(space_.region_1(head), position, scratch).has_value();
  }
  // Section 4.2: the newest version is incomplete, and the previous one takes its place; if there
  // is none, the key never existed.
  void restore(const hopscotch::Entry& entry);
  // Whether a version was written before the server last started, and has not been verified since.
  bool unverified(std::uint8_t head, Position position) const {
    return position < unverified_before_[head - 1];
  }

  // --- writing

  struct Begun {
    Outcome outcome = Outcome::ok;
    Position position;
  };
  // Sections 3.3 and 4.1: reserves space and lets the entry point to it by one atomic store; the
  // client writes the object. Not while the head is cleaned.
  Begun begin_version(bool erase, const hopscotch::StoredKey& key,
                      const std::optional<hopscotch::Entry>& entry, Bytes object_size,
                      Scratch& scratch);
  // Makes an object durable that a client wrote where begin_version() said.
  void persist_written(std::uint8_t head, Position position, Bytes size);
  // Section 4.4: the server writes the object, which the client sent sealed for life 0, and then
  // the entry, to where the phase of the head has new versions. Durable when it returns.
  Outcome write_version(bool erase, const hopscotch::StoredKey& key,
                        const std::optional<hopscotch::Entry>& entry, std::span<std::byte> object,
                        Scratch& scratch);

  // --- log cleaning (cleaner.h runs these), object by object

  // The entry of a head whose key an object has, live or stale; nothing if it is no object.
  std::optional<hopscotch::Entry> entry_of(std::uint8_t head, const Log& log, Position position,
                                           Scratch& scratch);
  // Merging: copies the object at this place of Region 1 to Region 2 if it is the newest version of
  // its key, or removes the key if that is deleted. False if there is no space.
  bool merge_object(std::uint8_t head, Position position, Scratch& scratch);
  // Replicating: the same to the reserved part, of which everything before `to` is used. Returns
  // what is used then.
  Position replicate_object(std::uint8_t head, Position position, Position to, Scratch& scratch);
  // Switching: flips the tag of the key whose copy lies at this place.
  void switch_object(std::uint8_t head, Position position, Scratch& scratch);
  // Drops all copies; Region 1 is as it was. Only while merging.
  void abandon_cleaning(std::uint8_t head);
  void end_cleaning(std::uint8_t head);

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
    table_.for_each([&](const hopscotch::Entry& entry, std::span<const std::byte>) {
      if (entry.tag == head) visit(entry);
    });
  }

  // Makes a version that a client wrote durable, if it is whole.
  void persist(const Log& log, Position position, Scratch& scratch);
  // The position behind an object that has been read.
  Position position_behind(Position position, const Scratch& object) const;
  void write_object(const Log& log, Position position, std::span<std::byte> object,
                    std::uint32_t sealed_for);
  void set_word(const hopscotch::Entry& entry, VersionWord word) {
    table_.set_word(entry.bucket, word.raw(), kVersionLayout);
  }

  PoolLayout layout_;
  ObjectFormat format_;
  std::unique_ptr<pmem::Region> pool_;
  hopscotch::Table table_;
  Space space_;
  SpinLock lock_;
  bool persist_before_update_;
  std::vector<Position> unverified_before_;  // by head - 1
};

}  // namespace perdura::systems::erda
