// The undo log of a piece of a pool's memory (MCAS, section 4.3): before a transaction changes a
// range, the range's old contents are copied to the log and made durable there. A transaction that
// is not completed is undone from these copies.
//
//      0        8        16       24
//      +--------+--------+--------+---------------------------+
//      | offset | length | check  | the bytes that were there |  entry 0, and so on without gaps;
//      +--------+--------+--------+---------------------------+  each of whole words
//
// An entry is valid if its check is the hash of its other fields and of the transaction's number.
// So an entry needs no second fence to be atomic: one torn by a failure ends the log (except for
// one in 2^64, which is not recognized as torn), and storing the next number clears the whole log
// at once.
#pragma once

#include <cstdint>
#include <vector>

#include "systems/mcas/containers/piece.h"

namespace perdura::systems::mcas::containers {

class UndoLog {
 public:
  // `log`: the range of the entries, aligned to a cache line. `number`: the offset of the word that
  // holds the transaction's number.
  UndoLog(const Piece& piece, ByteRange log, Bytes number)
      : piece_(piece), log_(log), number_at_(number), number_(piece.load(number)) {}

  // Initializes an empty log, whatever the memory contains; durable when it returns.
  static void format(const Piece& piece, ByteRange log, Bytes number);

  bool empty() const { return used_ == 0; }
  // Makes a copy of the range durable. Returns false if the log has no room for it.
  bool save(ByteRange range);
  // Ends the transaction; its changes must be durable by then. Durable when it returns.
  void clear();
  // Writes back the saved ranges, also after a restart, and clears the log. Durable when it
  // returns. Returns true if there was anything to write back.
  bool undo();

 private:
  struct SavedRange {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;  // 0: there is no entry here
    std::uint64_t check = 0;
  };
  static_assert(sizeof(SavedRange) == 24);

  static Bytes size_of(Bytes length) { return sizeof(SavedRange) + round_up(length, kWord); }
  // The entry at this offset of the log, with its bytes in `scratch_`; of length 0 if none is valid
  // there.
  SavedRange entry_at(Bytes offset);

  Piece piece_;
  ByteRange log_;
  Bytes number_at_;
  std::uint64_t number_;
  Bytes used_ = 0;  // the room that entries of the running transaction take
  std::vector<std::byte> scratch_;
};

}  // namespace perdura::systems::mcas::containers
