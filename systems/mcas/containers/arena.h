// An arena: a heap with transactions inside one piece of a pool's memory, in which plugins keep
// containers (MCAS, section 4.3 and Appendix B).
//
//   Arena arena(memory, value);             // undoes what a failure has interrupted
//   Vector<Version> versions(arena, 0);     // its root is at the beginning of the arena's roots
//   List<std::string> names(arena, Vector<Version>::kRootSize);
//   const bool done = arena.transact([&] {
//     versions.push_back(version);
//     names.push_front("latest");
//   });                                     // both, or neither if this is false: out of space
//
// A transaction is durable when transact() returns. After a failure at any moment the arena is as
// after the last transaction that was completed, or as after the one that was interrupted.
//
//      0                            64         64 + log
//      +----------------------------+----------+--------+---------------+-------------------
//      | magic, sizes, transaction  | undo log | roots  | units in use  | units of 32 bytes
//      +----------------------------+----------+--------+---------------+-------------------
//                                                         a bit for each
//
// All that a transaction changes is saved in the undo log before, also which units are in use, so
// that no memory leaks. What it allocates is not saved, as nobody misses what was in free memory;
// for the same reason what it frees is not allocated again before its end.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "systems/mcas/containers/piece.h"
#include "systems/mcas/containers/ranges.h"
#include "systems/mcas/containers/undo_log.h"

namespace perdura::systems::mcas::containers {

class Arena {
 public:
  struct Sizes {
    Bytes log = 4 * KiB;       // of the undo log: what a transaction changes, and 24 bytes a change
    Bytes roots = kCacheLine;  // for the roots of containers
  };

  // Makes an empty arena of a piece of memory; durable when it returns. The roots are zeros. Throws
  // UsageError if the piece is too small, or does not begin at a line.
  static void format(const Memory& memory, Place place, Sizes sizes);
  static void format(const Memory& memory, Place place) { format(memory, place, Sizes{}); }
  // Whether format() has made one here and has ended.
  static bool exists(const Memory& memory, Place place);

  // Opens an arena, and undoes a transaction that was interrupted. Throws UsageError if there is
  // none.
  Arena(const Memory& memory, Place place);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Whether opening has found an interrupted transaction.
  bool undone() const { return undone_; }

  // Runs `change`, and makes what it has changed durable. False if the arena has no room for it:
  // then all is as before, as it is if `change` throws.
  template <class Change>
  bool transact(Change change);

  Bytes free_bytes() const;
  // What contradicts itself, as a phrase; empty if nothing does. `visit_blocks(visit)` is to call
  // `visit(place)` for each block that containers have allocated.
  template <class VisitBlocks>
  std::string audit(VisitBlocks visit_blocks) const {
    std::vector<Place> blocks;
    visit_blocks([&](Place block) { blocks.push_back(block); });
    return audit_blocks(blocks);
  }

  // --- for containers. Changes are possible in a transaction only; else they throw
  // std::logic_error. ---

  // The offset in the arena of a byte of the roots. Throws std::out_of_range if `length` bytes do
  // not fit there.
  Bytes root(Bytes offset, Bytes length) const;
  void read(Bytes offset, std::span<std::byte> into) const { piece_.read(offset, into); }
  template <class T>
  T read(Bytes offset) const {
    return piece_.read_object<T>(offset);
  }
  void write(Bytes offset, std::span<const std::byte> bytes);
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void write(Bytes offset, const T& object) { write(offset, std::as_bytes(std::span(&object, 1))); }
  // The offset of a new block, whose contents are unspecified.
  Bytes allocate(Bytes length);
  void free(Place block);

 private:
  struct OutOfSpace {};
  struct Header;

  static constexpr Bytes kUnit = 32;
  static constexpr std::uint64_t kBits = 64;  // of a word of the bitmap

  // Where everything is in an arena of this size.
  struct Layout {
    Place log;
    Place roots;
    Bytes bitmap = 0;
    std::uint64_t units = 0;
    Bytes first_unit = 0;
  };
  static Layout layout_of(Bytes size, Sizes sizes);
  // A layout without units if there is no arena.
  static Layout layout_at(const Piece& piece);
  static Layout layout_of_existing(const Piece& piece);
  static Piece piece_at(const Memory& memory, Place place);

  void begin();
  void commit();
  void roll_back();
  void end();
  void mark(Bytes block, Bytes length, bool used);
  std::uint64_t bitmap_word(std::uint64_t index) const {
    return piece_.load(layout_.bitmap + index * kWord);
  }
  Place units_of(Place block) const { return {block.offset, round_up(block.length, kUnit)}; }
  std::string audit_blocks(std::span<const Place> blocks) const;

  Piece piece_;
  Layout layout_;
  UndoLog log_;
  bool undone_ = false;
  // Of the transaction that runs:
  bool running_ = false;
  Ranges kept_;     // saved, or free before it
  Ranges changed_;  // in whole lines
  Ranges freed_;
};

template <class Change>
bool Arena::transact(Change change) {
  begin();
  try {
    change();
  } catch (const OutOfSpace&) {
    roll_back();
    return false;
  } catch (...) {
    roll_back();
    throw;
  }
  commit();
  return true;
}

}  // namespace perdura::systems::mcas::containers
