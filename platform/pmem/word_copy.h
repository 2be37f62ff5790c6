// Copies between private memory and memory that other threads and processes access at the same
// time.
//
// On the shared side every aligned 8-byte word is read and written as a whole, so a concurrent
// reader may see some words old and others new (a torn object) but never a torn word: what a NIC's
// DMA promises. Stores have release order and loads acquire order, one word after the other, which
// costs nothing on x86 and lets a flag that is written after its data mean something.
#pragma once

#include <cstddef>
#include <span>

#include "platform/pmem/accounting.h"

namespace perdura::pmem::mapped {

void copy_to_shared(std::byte* to, std::span<const std::byte> from);
void copy_from_shared(std::span<std::byte> into, const std::byte* from);

// Like copy_to_shared() with non-temporal stores; partial words at both ends are flushed, so that
// the next drain covers the whole range.
void stream_to_shared(std::byte* to, std::span<const std::byte> from);

// Non-temporal stores of one byte to all of whole cache lines.
void fill_lines(std::byte* to, Bytes length, std::byte value);

// The sum of the words of whole cache lines, loaded 16 bytes at a time. Nobody may write them
// meanwhile.
std::uint64_t sum_lines(const std::byte* from, Bytes length);

// Counts the replacement of the bytes at `target` by `from`; called before the copy.
void count_write(WriteMeter& meter, Cause cause, const std::byte* target,
                 std::span<const std::byte> from);

}  // namespace perdura::pmem::mapped
