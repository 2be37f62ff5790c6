// Bit masks of the bytes of a cache line: bit i stands for byte i.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "platform/base/units.h"

namespace perdura::pmem {

inline std::uint64_t mask_of(Bytes begin, Bytes length) {
  const std::uint64_t ones = length >= kCacheLine ? ~0ULL : (1ULL << length) - 1;
  return ones << begin;
}

// The bytes of the line at offset `line` that are in the range [offset, offset + length).
inline std::uint64_t mask_in(Bytes line, Bytes offset, Bytes length) {
  const Bytes begin = std::max(line, offset);
  const Bytes end = std::min(line + kCacheLine, offset + length);
  return begin < end ? mask_of(begin - line, end - begin) : 0;
}

inline void apply(std::uint64_t mask, const std::array<std::byte, kCacheLine>& from,
                  std::array<std::byte, kCacheLine>& to) {
  for (; mask != 0; mask &= mask - 1) {
    const auto byte = static_cast<std::size_t>(std::countr_zero(mask));
    to[byte] = from[byte];
  }
}

}  // namespace perdura::pmem
