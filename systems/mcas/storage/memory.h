// The memory of a shard: a region, and how stores to it become durable.
#pragma once

#include "platform/pmem/region.h"
#include "systems/flushing.h"

namespace perdura::systems::mcas {

// A range of a shard's memory, or of a part of it whose offsets begin at 0.
struct ByteRange {
  Bytes offset = 0;
  Bytes length = 0;

  Bytes end() const { return offset + length; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

class Memory {
 public:
  Memory(pmem::Region& region, Flushing flushing)
      : region_(&region), flushes_(flushing == Flushing::lines) {}

  pmem::Region& region() const { return *region_; }

  // Everything stored to a flushed range is durable after the next drain(). If the caches are in
  // the persistence domain, flush() does nothing. A range may begin or end within a line, as that of
  // a direct transfer does. All lines that hold a byte of it are flushed whole, so nothing of it is
  // left out; stores of others to these lines may become durable sooner, as they may at any time.
  void flush(ByteRange range) const {
    if (flushes_) region_->flush(range.offset, range.length);
  }
  void drain() const { region_->drain(); }
  void persist(ByteRange range) const {
    flush(range);
    drain();
  }
  // An 8-byte atomic store that is durable when this returns.
  void store_durably(Bytes offset, std::uint64_t value) const {
    region_->store(offset, value);
    persist({offset, kWord});
  }

 private:
  pmem::Region* region_;
  bool flushes_;
};

}  // namespace perdura::systems::mcas
