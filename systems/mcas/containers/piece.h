// One piece of a pool's memory: the value of a key, or memory that belongs to no key. Offsets are
// relative to its beginning, so its contents may be moved and mapped anywhere. An access outside of
// the piece throws std::out_of_range, as for a region.
#pragma once

#include <span>
#include <stdexcept>
#include <type_traits>

#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas::containers {

class Piece {
 public:
  Piece(Memory memory, ByteRange range) : memory_(memory), range_(range) {}

  Bytes size() const { return range_.length; }

  // Accesses like those of a region, and persistence like that of a shard's memory.
  std::uint64_t load(Bytes offset) const { return memory_.region().load(at({offset, kWord})); }
  void store(Bytes offset, std::uint64_t value) const {
    memory_.region().store(at({offset, kWord}), value);
  }
  void read(Bytes offset, std::span<std::byte> into) const {
    memory_.region().read_unchanging(at({offset, into.size()}), into);
  }
  template <class T>
  requires std::is_trivially_copyable_v<T> T read_object(Bytes offset)
  const { return memory_.region().read_object<T>(at({offset, sizeof(T)})); }
  void write(Bytes offset, std::span<const std::byte> from) const {
    memory_.region().write(at({offset, from.size()}), from);
  }
  void flush(ByteRange range) const { memory_.flush({at(range), range.length}); }
  void drain() const { memory_.drain(); }
  void persist(ByteRange range) const {
    flush(range);
    drain();
  }
  void store_durably(Bytes offset, std::uint64_t value) const {
    memory_.store_durably(at({offset, kWord}), value);
  }

 private:
  Bytes at(ByteRange range) const {
    if (range.offset > range_.length || range.length > range_.length - range.offset) {
      throw std::out_of_range("an access outside of a piece of a pool's memory");
    }
    return range_.offset + range.offset;
  }

  Memory memory_;
  ByteRange range_;
};

}  // namespace perdura::systems::mcas::containers
