// The persistence instructions of x86: writing cache lines back and waiting for it.
//
// Emulated write latency: DRAM that stands in for persistent memory is faster than it. With
// set_write_latency(), every flushed line costs that much additional time, which the flushing
// thread spends spinning, as published emulators do. The setting is for the whole process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "platform/base/units.h"

namespace perdura::pmem::mapped {

enum class FlushInstruction : std::uint8_t { clflush, clflushopt, clwb };
std::string_view to_string(FlushInstruction instruction);

// Whether this CPU has it.
bool available(FlushInstruction instruction);
// What flush_lines() uses: the cheapest one that the CPU has (clwb, clflushopt, clflush).
FlushInstruction flush_instruction();

// Starts writing back all lines that hold any byte of [address, address + length).
void flush_lines(const std::byte* address, Bytes length);
// The same with one given instruction, which must be available; without the emulated latency.
void flush_lines_with(FlushInstruction instruction, const std::byte* address, Bytes length);

// Waits until what was flushed or streamed before is in the persistence domain (sfence).
void drain();

void set_write_latency(Nanoseconds per_line);
Nanoseconds write_latency();

}  // namespace perdura::pmem::mapped
