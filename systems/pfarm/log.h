// The redo logs of P-FaRM-KV: "FaRM-KV still needs to use logging when the updates occur across
// buckets" ("Consistent RDMA-Friendly Hashing on Remote Persistent Memory", section III), and "uses
// logging for each write operation". Each worker has a log, with room for one record. The log's
// mark is in a cache line of its own:
//
//      0                64                                               128
//      +----------------+------------------------------------------------+
//      | mark           | item | target| header | from | header of from  |
//      +----------------+------------------------------------------------+
//
// A write stores the record, the mark, the item and the headers, and clears the mark; every line is
// flushed once. A record holds absolute values, so applying it is idempotent. The worker keeps the
// buckets of its record locked until the mark is cleared, so records of different logs commute and
// may be applied in any order.
#pragma once

#include <cstdint>
#include <optional>

#include "platform/pmem/region.h"
#include "systems/bucket_hash/readers.h"
#include "systems/flushing.h"
#include "systems/pfarm/layout.h"

namespace perdura::systems::pfarm {

using bucket_hash::Readers;

// Accesses to the index, by offsets in bytes from the start of the index.
class Memory {
 public:
  Memory(pmem::Region& region, Bytes start, Flushing flushing)
      : region_(region), start_(start), flushing_(flushing) {}

  std::uint64_t load(Bytes offset) const { return region_.load(start_ + offset); }
  template <class T>
  T read(Bytes offset) const {
    return region_.read_object<T>(start_ + offset);
  }
  void store(Bytes offset, std::uint64_t value) { region_.store(start_ + offset, value); }
  template <class T>
  void write(Bytes offset, const T& object) {
    region_.write_object(start_ + offset, object);
  }
  void flush(Bytes offset, Bytes length) {
    if (flushing_ == Flushing::lines) region_.flush(start_ + offset, length);
  }
  void drain() { region_.drain(); }
  void persist(Bytes offset, Bytes length) {
    flush(offset, length);
    drain();
  }
  const std::string& name() const { return region_.name(); }

 private:
  pmem::Region& region_;
  Bytes start_;
  Flushing flushing_;
};

// `target` is the offset of a bucket, with the number of the slot in the low bits.
struct Record {
  Slot item{};               // the new contents of the slot
  std::uint64_t target = 0;  // the slot
  Header header = 0;         // the new header of its bucket
  Bytes from = 0;            // the bucket that the item leaves, or 0
  Header from_header = 0;    // the new header of that bucket

  static std::uint64_t target_of(Bytes bucket, SlotNumber slot) { return bucket | slot; }
  Bytes bucket() const { return target & ~(kCacheLine - 1); }
  SlotNumber slot() const { return static_cast<SlotNumber>(target & (kCacheLine - 1)); }
};
static_assert(sizeof(Record) == kCacheLine && std::is_trivially_copyable_v<Record>);

class RedoLog {
 public:
  // The log at this offset of the index.
  RedoLog(Memory& memory, Bytes offset) : memory_(&memory), offset_(offset) {}

  // Each of these steps persists what it stores.
  void write(const Record& record) {
    memory_->write(offset_ + kRecord, record);
    memory_->persist(offset_ + kRecord, sizeof record);
  }
  void commit() { set_mark(kCommitted); }
  void end() { set_mark(0); }

  // After a crash: the record that must be applied, if there is one.
  std::optional<Record> committed() const {
    if (memory_->load(offset_) == 0) return std::nullopt;
    return memory_->read<Record>(offset_ + kRecord);
  }

 private:
  static constexpr Bytes kRecord = kCacheLine;  // after the mark's line
  static constexpr std::uint64_t kCommitted = 1;
  static_assert(kRecord + sizeof(Record) <= kLogSize);

  void set_mark(std::uint64_t mark) {
    memory_->store(offset_, mark);
    memory_->persist(offset_, kWord);
  }

  Memory* memory_;
  Bytes offset_;
};

}  // namespace perdura::systems::pfarm
