// Copies between streams of bytes and memory in pieces, by a CPU: what is stored is counted as a
// store of this thread, and every aligned word is accessed as a whole.
#pragma once

#include <cstddef>
#include <span>

#include "platform/fabric/types.h"

namespace perdura::fabric::tcp {

// Throws std::out_of_range if a piece is not in its region.
void check_pieces(const LocalPieces& pieces);

// From and to the place `position` bytes behind the start of the first piece.
void gather(const LocalPieces& pieces, Bytes position, std::span<std::byte> into);
void scatter(const LocalPieces& pieces, Bytes position, std::span<const std::byte> from);

// The most bytes, up to `length`, behind which a copy that begins at `position` can be interrupted
// without a word being copied in two parts. Less than a word short of `length`.
std::size_t whole_words(const LocalPieces& pieces, Bytes position, std::size_t length);

// Whether any of it is in persistent memory.
bool is_persistent(const LocalPieces& pieces);

}  // namespace perdura::fabric::tcp
