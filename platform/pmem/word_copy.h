// Copies between private memory and shared memory, which other threads and processes access at the
// same time.
//
// On the shared side every aligned 8-byte word is read and written atomically. So a concurrent
// reader may see a mix of old and new words (a torn object) but never a torn word, as with a NIC's
// DMA. Stores have release order and loads acquire order, one word after the other. That costs
// nothing on x86, and a reader that sees a flag also sees the data written before it.
#pragma once

#include <cstddef>
#include <span>

#include "platform/pmem/accounting.h"

namespace perdura::pmem {

void copy_to_shared(std::byte* to, std::span<const std::byte> from);
void copy_from_shared(std::span<std::byte> into, const std::byte* from);
// Copies between two ranges of shared memory.
void copy_between_shared(std::byte* to, std::span<const std::byte> from);

// Like copy_to_shared(), by non-temporal stores. Partial words at both ends are stored normally and
// flushed, so that the next drain makes the whole range durable.
void stream_to_shared(std::byte* to, std::span<const std::byte> from);

// Fills whole cache lines with one byte value by non-temporal stores.
void fill_lines(std::byte* to, Bytes length, std::byte value);

// Returns the sum of the words of whole cache lines, which it loads 16 bytes at a time. The lines
// must not be written meanwhile.
std::uint64_t sum_lines(const std::byte* from, Bytes length);

// Counts the replacement of the bytes at `target` by `from`. Must be called before the copy.
void count_write(WriteMeter& meter, Cause cause, const std::byte* target,
                 std::span<const std::byte> from);

}  // namespace perdura::pmem
