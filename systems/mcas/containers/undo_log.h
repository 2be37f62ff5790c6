// The undo log of a piece of a pool's memory (MCAS, section 4.3): what a transaction changes is
// copied before, and the copy is durable before the change is made. A transaction that is not
// completed is undone from these copies.
//
//      0        8        16       24
//      +--------+--------+--------+---------------------------+
//      | offset | length | check  | the bytes that were there |  entry 0, and so on without gaps;
//      +--------+--------+--------+---------------------------+  each of whole words
//
// An entry is valid if its check is the hash of its other fields and of the transaction's number.
// So it needs no second fence to be atomic: an entry that a failure has torn is the
// end of the log (one in 2^64 of them is not recognized), and storing the next number clears the
// whole log at once.
#pragma once

#include <cstdint>
#include <vector>

#include "systems/mcas/containers/piece.h"

namespace perdura::systems::mcas::containers {

class UndoLog {
 public:
  // `log`: where its entries are, aligned to a line. `number`: the offset of the word that holds
  // the transaction's number.
  UndoLog(const Piece& piece, Place log, Bytes number)
      : piece_(piece), log_(log), number_at_(number), number_(piece.load(number)) {}

  // Makes an empty log of whatever is there; durable when it returns.
  static void format(const Piece& piece, Place log, Bytes number);

  bool empty() const { return used_ == 0; }
  // Makes a copy of the range durable. False if the log has no room for it.
  bool save(Place range);
  // The changes stand, which the caller has made durable. Durable when it returns.
  void clear();
  // Writes back what was saved, and clears the log. Durable when it returns. Returns whether
  // anything was saved; after a restart, too.
  bool undo();

 private:
  struct Entry {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;  // in an entry never 0
    std::uint64_t check = 0;
  };
  static_assert(sizeof(Entry) == 24);

  static Bytes size_of(Bytes length) { return sizeof(Entry) + round_up(length, kWord); }
  // The entry at this offset from the beginning of the log, with its bytes in `scratch_`; one of
  // length 0 if none is valid there.
  Entry entry_at(Bytes offset);

  Piece piece_;
  Place log_;
  Bytes number_at_;
  std::uint64_t number_;
  Bytes used_ = 0;  // by entries of the transaction
  std::vector<std::byte> scratch_;
};

}  // namespace perdura::systems::mcas::containers
