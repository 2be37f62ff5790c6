// An arena: a heap with transactions inside one piece of a pool's memory, in which plugins keep
// containers (MCAS, section 4.3 and Appendix B).
//
//   Arena arena(memory, value);             // undoes an interrupted transaction
//   Vector<Version> versions(arena, 0);     // its root is at the beginning of the arena's roots
//   List<std::string> names(arena, Vector<Version>::kRootSize);
//   const bool done = arena.transact([&] {
//     versions.push_back(version);
//     names.push_front("latest");
//   });                                     // both changes, or neither if out of space (false)
//
// A transaction is durable when transact() returns. After a failure at any time the arena has the
// state after the last completed transaction or after the interrupted one.
//
//      0                            64         64 + log
//      +----------------------------+----------+--------+---------------+-------------------
//      | magic, sizes, transaction  | undo log | roots  | units in use  | units of 32 bytes
//      +----------------------------+----------+--------+---------------+-------------------
//                                                         a bit for each
//
// Everything that a transaction changes is saved in the undo log first, including the bitmap of
// units in use, so that no memory leaks. Newly allocated blocks are not saved, since the old
// contents of free memory do not matter; for the same reason a block that a transaction frees is
// not allocated again before the transaction ends.
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
    Bytes log = 4 * KiB;       // bytes of the undo log: a transaction's changes and 24 bytes each
    Bytes roots = kCacheLine;  // room for the roots of containers
  };

  // Creates an empty arena in a piece of memory; durable when it returns. The roots are zeros.
  // Throws UsageError if the piece is too small or does not begin at a cache line.
  static void format(const Memory& memory, ByteRange range, Sizes sizes);
  static void format(const Memory& memory, ByteRange range) { format(memory, range, Sizes{}); }
  // Returns true if format() was completed here.
  static bool exists(const Memory& memory, ByteRange range);

  // Opens an arena, and undoes an interrupted transaction. Throws UsageError if there is no arena.
  Arena(const Memory& memory, ByteRange range);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // True if the constructor has undone an interrupted transaction.
  bool undone() const { return undone_; }

  // Runs `change`, and makes its changes durable. Returns false if the arena has too little space.
  // The changes are undone then, and also if `change` throws.
  template <class Change>
  bool transact(Change change);

  Bytes free_bytes() const;
  // Returns an inconsistency as a phrase; empty if there is none. `visit_blocks(visit)` must call
  // `visit(range)` for each block that containers have allocated.
  template <class VisitBlocks>
  std::string audit(VisitBlocks visit_blocks) const {
    std::vector<ByteRange> blocks;
    visit_blocks([&](ByteRange block) { blocks.push_back(block); });
    return audit_blocks(blocks);
  }

  // --- for containers. Changes are possible in a transaction only; else they throw
  // std::logic_error. ---

  // Converts an offset within the roots to an offset in the arena. Throws std::out_of_range if
  // `length` bytes do not fit there.
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
  // Returns the offset of a new block, whose contents are unspecified.
  Bytes allocate(Bytes length);
  void free(ByteRange block);

 private:
  struct OutOfSpace {};
  struct Header;

  static constexpr Bytes kUnit = 32;
  static constexpr std::uint64_t kBits = 64;  // per word of the bitmap

  // The ranges of an arena's parts.
  struct Layout {
    ByteRange log;
    ByteRange roots;
    Bytes bitmap = 0;
    std::uint64_t units = 0;
    Bytes first_unit = 0;
  };
  static Layout layout_of(Bytes size, Sizes sizes);
  // Returns a layout without units if there is no arena.
  static Layout layout_at(const Piece& piece);
  static Layout layout_of_existing(const Piece& piece);
  static Piece piece_at(const Memory& memory, ByteRange range);

  void begin();
  void commit();
  void roll_back();
  void end();
  void mark(Bytes block, Bytes length, bool used);
  std::uint64_t bitmap_word(std::uint64_t index) const {
    return piece_.load(layout_.bitmap + index * kWord);
  }
  ByteRange units_of(ByteRange block) const {
    return {block.offset, round_up(block.length, kUnit)};
  }
  std::string audit_blocks(std::span<const ByteRange> blocks) const;

  Piece piece_;
  Layout layout_;
  UndoLog log_;
  bool undone_ = false;
  // State of the running transaction.
  bool running_ = false;
  Ranges kept_;     // saved, or free before the transaction
  Ranges changed_;  // whole cache lines that must be flushed
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
