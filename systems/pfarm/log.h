// The redo logs of P-FaRM-KV: "FaRM-KV still needs to use logging when the updates occur across
// buckets" ("Consistent RDMA-Friendly Hashing on Remote Persistent Memory", section III), and "uses
// logging for each write operation". Each worker has one, with room for one record, whose mark is
// in a line of its own:
//
//      0                64                                               128
//      +----------------+------------------------------------------------+
//      | mark           | item | place | header | from | header of from  |
//      +----------------+------------------------------------------------+
//
// A write is the record, the mark, the item, the headers, and the mark again; every line is flushed
// once. Whatever a record says is said in absolute terms, so it may be applied again and again. The
// buckets that it is about are its worker's alone until the mark is gone, so records of several
// logs may be applied in any order.
#pragma once

#include <cstdint>
#include <optional>

#include "platform/pmem/region.h"
#include "systems/bucket_hash/flushing.h"
#include "systems/pfarm/layout.h"

namespace perdura::systems::pfarm {

using bucket_hash::Flushing;
using bucket_hash::Readers;

// The index within its region. Offsets are in bytes from the start of the index.
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

// A place is the offset of a bucket with the number of a slot in its low bits.
struct Record {
  Slot item{};              // that the slot shall hold
  std::uint64_t place = 0;  // of the slot
  Header header = 0;        // of its bucket, afterwards
  Bytes from = 0;           // the bucket that the item comes from, or 0
  Header from_header = 0;   // of that bucket, afterwards

  static std::uint64_t place_of(Bytes bucket, SlotNumber slot) { return bucket | slot; }
  Bytes bucket() const { return place & ~(kCacheLine - 1); }
  SlotNumber slot() const { return static_cast<SlotNumber>(place & (kCacheLine - 1)); }
};
static_assert(sizeof(Record) == kCacheLine && std::is_trivially_copyable_v<Record>);

class RedoLog {
 public:
  // The one at this offset of the index.
  RedoLog(Memory& memory, Bytes offset) : memory_(&memory), offset_(offset) {}

  // Each step persists what it stores.
  void write(const Record& record) {
    memory_->write(offset_ + kRecord, record);
    memory_->persist(offset_ + kRecord, sizeof record);
  }
  void commit() { set_mark(kCommitted); }
  void end() { set_mark(0); }

  // The record that must be applied, after a crash.
  std::optional<Record> committed() const {
    if (memory_->load(offset_) == 0) return std::nullopt;
    return memory_->read<Record>(offset_ + kRecord);
  }

 private:
  static constexpr Bytes kRecord = kCacheLine;  // behind the mark's line
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
