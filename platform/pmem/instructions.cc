#include "platform/pmem/instructions.h"

#include <cpuid.h>
#include <immintrin.h>

#include <atomic>

namespace perdura::pmem {
namespace {

struct Features {
  bool clflushopt = false;
  bool clwb = false;
  Features() {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
      clflushopt = (b & bit_CLFLUSHOPT) != 0;
      clwb = (b & bit_CLWB) != 0;
    }
  }
};

const Features& features() {
  static const Features found;
  return found;
}

std::atomic<std::int64_t> latency_per_line{0};

void spin_for(Nanoseconds duration) {
  const auto end = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < end) __builtin_ia32_pause();
}

// The three loops differ only in the instruction, which needs its own target attribute.
void flush_clflush(const std::byte* line, const std::byte* end) {
  for (; line < end; line += kCacheLine) _mm_clflush(line);
}

__attribute__((target("clflushopt"))) void flush_clflushopt(const std::byte* line,
                                                            const std::byte* end) {
  for (; line < end; line += kCacheLine) _mm_clflushopt(const_cast<std::byte*>(line));
}

__attribute__((target("clwb"))) void flush_clwb(const std::byte* line, const std::byte* end) {
  for (; line < end; line += kCacheLine) _mm_clwb(const_cast<std::byte*>(line));
}

const std::byte* first_line(const std::byte* address) {
  return address - reinterpret_cast<std::uintptr_t>(address) % kCacheLine;
}

}  // namespace

std::string_view to_string(FlushInstruction instruction) {
  switch (instruction) {
    case FlushInstruction::clflush:
      return "clflush";
    case FlushInstruction::clflushopt:
      return "clflushopt";
    case FlushInstruction::clwb:
      return "clwb";
  }
  return "unknown instruction";
}

bool available(FlushInstruction instruction) {
  switch (instruction) {
    case FlushInstruction::clflush:
      return true;  // part of x86-64
    case FlushInstruction::clflushopt:
      return features().clflushopt;
    case FlushInstruction::clwb:
      return features().clwb;
  }
  return false;
}

FlushInstruction flush_instruction() {
  if (features().clwb) return FlushInstruction::clwb;
  return features().clflushopt ? FlushInstruction::clflushopt : FlushInstruction::clflush;
}

void flush_lines_with(FlushInstruction instruction, const std::byte* address, Bytes length) {
  const std::byte* line = first_line(address);
  const std::byte* end = address + length;
  switch (instruction) {
    case FlushInstruction::clflush:
      return flush_clflush(line, end);
    case FlushInstruction::clflushopt:
      return flush_clflushopt(line, end);
    case FlushInstruction::clwb:
      return flush_clwb(line, end);
  }
}

void flush_lines(const std::byte* address, Bytes length) {
  static const FlushInstruction chosen = flush_instruction();
  if (length == 0) return;
  flush_lines_with(chosen, address, length);
  if (const auto each = latency_per_line.load(std::memory_order_relaxed); each != 0) {
    const Bytes span = static_cast<Bytes>(address - first_line(address)) + length;
    spin_for(Nanoseconds(each) * static_cast<std::int64_t>((span + kCacheLine - 1) / kCacheLine));
  }
}

void drain() { _mm_sfence(); }

void set_write_latency(Nanoseconds per_line) {
  latency_per_line.store(per_line.count(), std::memory_order_relaxed);
}

Nanoseconds write_latency() {
  return Nanoseconds(latency_per_line.load(std::memory_order_relaxed));
}

}  // namespace perdura::pmem
