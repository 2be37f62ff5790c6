// The persistence instructions of x86, which write cache lines back and wait for the write-backs.
//
// Emulated write latency: DRAM that stands in for persistent memory is faster than persistent
// memory. After set_write_latency(), every flushed line costs that much additional time, for which
// the flushing thread spins, as in published emulators. The setting applies to the whole process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "platform/base/units.h"

namespace perdura::pmem {

enum class FlushInstruction : std::uint8_t { clflush, clflushopt, clwb };
std::string_view to_string(FlushInstruction instruction);

// True if this CPU has the instruction.
bool available(FlushInstruction instruction);
// The instruction that flush_lines() uses: the first of clwb, clflushopt and clflush that the CPU
// has.
FlushInstruction flush_instruction();

// Starts writing back all lines that hold any byte of [address, address + length).
void flush_lines(const std::byte* address, Bytes length);
// Flushes with the given instruction, which must be available; adds no emulated latency.
void flush_lines_with(FlushInstruction instruction, const std::byte* address, Bytes length);

// Fetches the line into this CPU's cache for writing: a hint.
inline void prefetch_for_writing(const void* address) {
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(address)));
}

// Waits until everything that this thread flushed or streamed before is in the persistence domain
// (sfence).
void drain();

void set_write_latency(Nanoseconds per_line);
Nanoseconds write_latency();

}  // namespace perdura::pmem
