// Accesses of the memory probes, on a region of whichever platform.
#pragma once

#include <cstdint>
#include <string_view>

#include "platform/pmem/region.h"

namespace perdura::bench {

enum class Pattern : std::uint8_t { sequential, random };
std::string_view to_string(Pattern pattern);

// Writes a chain of dependent loads into [0, length) of a region: each cache line holds the offset
// of the next one, and following it from 0 visits every line once before it is back. `length` is a
// power of two, of four lines at least. The stores are not accounted for: it is preparation.
void write_chain(pmem::Region& region, Bytes length, Pattern pattern);

// Follows a chain for so many loads from `at`, and returns where it then is. Cold: no cache holds
// the lines, as the caller has seen to.
Bytes follow_chain(const pmem::Region& region, Bytes at, std::uint64_t loads);
Bytes follow_cold_chain(const pmem::Region& region, Bytes at, std::uint64_t loads);

// Takes [0, length) out of all caches. `sim` has none: there nothing happens.
void evict(pmem::Region& region, Bytes length);

enum class Access : std::uint8_t {
  load,        // a scan of all lines
  ntstore,     // non-temporal stores and a fence
  store,       // ordinary stores, which stay in the caches for as long as they may
  store_clwb,  // ordinary stores, flushes of their lines, and a fence
};
std::string_view to_string(Access access);  // load, ntstore, store, store+clwb

// One access to `size` bytes at an offset, both multiples of a cache line. Returns what keeps the
// compiler from leaving loads out.
std::uint64_t access_memory(pmem::Region& region, Access access, Bytes offset, Bytes size);

// The same without the fence that ends it: for a part of an access. Only writes that must reach
// memory have one; end_access() makes it.
std::uint64_t access_part(pmem::Region& region, Access access, Bytes offset, Bytes size);
void end_access(pmem::Region& region, Access access);

// Offsets of accesses in [0, length), aligned to `size`: in order and again from the start, or in
// an order that visits each once before it repeats. `length` / `size` is a power of two, or
// sequential.
class Offsets {
 public:
  Offsets(Pattern pattern, Bytes length, Bytes size, std::uint64_t start = 0)
      : count_(length / size), size_(size), at_(start % count_), pattern_(pattern) {}
  Bytes next() {
    const Bytes offset = at_ * size_;
    at_ = following(pattern_, at_, count_);
    return offset;
  }
  // What comes after number `at` of `count`. Random is a linear congruential generator of full
  // period (Hull and Dobell, 1962: `count` a power of two, the addend odd, the factor 1 modulo 4):
  // no prefetcher guesses it, and nothing has to be remembered.
  static std::uint64_t following(Pattern pattern, std::uint64_t at, std::uint64_t count) {
    if (pattern == Pattern::sequential) return at + 1 == count ? 0 : at + 1;
    return (at * 0x5851F42D4C957F2D + 0x14057B7EF767814F) & (count - 1);
  }

 private:
  std::uint64_t count_;
  Bytes size_;
  std::uint64_t at_;
  Pattern pattern_;
};

}  // namespace perdura::bench
