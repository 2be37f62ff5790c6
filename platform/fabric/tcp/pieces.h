// Copies between streams of bytes and memory in pieces, made by a CPU: they count as stores of this
// thread, and every aligned word is accessed as a whole.
#pragma once

#include <cstddef>
#include <span>

#include "platform/fabric/types.h"

namespace perdura::fabric::tcp {

// Throws std::out_of_range if a piece is not in its region.
void check_pieces(const LocalPieces& pieces);

// Copy from and to the place `position` bytes after the start of the first piece.
void gather(const LocalPieces& pieces, Bytes position, std::span<std::byte> into);
void scatter(const LocalPieces& pieces, Bytes position, std::span<const std::byte> from);

// A copy of `length` bytes that begins at `position` is to be made in two parts. Returns the
// longest first part, of at most `length` bytes, that does not split a word; it is less than a word
// short of `length`.
std::size_t whole_words(const LocalPieces& pieces, Bytes position, std::size_t length);

// True if any of it is in persistent memory.
bool is_persistent(const LocalPieces& pieces);

}  // namespace perdura::fabric::tcp
