// Memory accesses that the probes are made of, on a region of any platform.
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

// Follows a chain for `loads` loads from offset `at` and returns the offset that it has reached.
// Callers that want cold lines must have evicted them.
Bytes follow_chain(const pmem::Region& region, Bytes at, std::uint64_t loads);
Bytes follow_cold_chain(const pmem::Region& region, Bytes at, std::uint64_t loads);

// Evicts [0, length) from all caches. A no-op on `sim`, which has no such caches.
void evict(pmem::Region& region, Bytes length);

enum class Access : std::uint8_t {
  load,        // loads of all lines in order
  ntstore,     // non-temporal stores and a fence
  store,       // ordinary stores without flushes: the lines may stay in the caches
  store_clwb,  // ordinary stores, flushes of their lines, and a fence
};
std::string_view to_string(Access access);  // load, ntstore, store, store+clwb

// Performs one access to `size` bytes at an offset, both multiples of a cache line. Returns a value
// that depends on the loads, so that the compiler cannot remove them.
std::uint64_t access_memory(pmem::Region& region, Access access, Bytes offset, Bytes size);

// Performs a part of an access: the same without the final fence, which end_access() issues. Only
// accesses whose writes must reach memory have a fence.
std::uint64_t access_part(pmem::Region& region, Access access, Bytes offset, Bytes size);
void end_access(pmem::Region& region, Access access);

// The offsets of accesses in [0, length), aligned to `size`: ascending and wrapping around, or in a
// random order that visits each once before it repeats. A random pattern needs a power of two as
// `length` / `size`.
class Offsets {
 public:
  Offsets(Pattern pattern, Bytes length, Bytes size, std::uint64_t start = 0)
      : count_(length / size), size_(size), at_(start % count_), pattern_(pattern) {}
  Bytes next() {
    const Bytes offset = at_ * size_;
    at_ = following(pattern_, at_, count_);
    return offset;
  }
  // The index that follows `at` among `count`. The random pattern is a linear congruential
  // generator of full period (Hull and Dobell, 1962: `count` is a power of two, the addend odd, the
  // factor 1 modulo 4): no prefetcher predicts it, and it needs no state but the index.
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
