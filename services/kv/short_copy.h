// Fast copies of a few bytes (keys, small values, ends of values) whose number is not known at
// compile time: without a function call, by accesses that may overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace perdura::kv {

template <class Word>
Word load_as(const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof(Word));
  return word;
}

// Loads `bytes` (at most 8) bytes as the low bytes of a word whose other bytes are 0.
inline std::uint64_t load_short(const std::byte* from, std::size_t bytes) {
  if (bytes == 8) return load_as<std::uint64_t>(from);
  if (bytes >= 4) {
    const std::uint64_t last = load_as<std::uint32_t>(from + bytes - 4);
    return load_as<std::uint32_t>(from) | last << (8 * (bytes - 4));
  }
  std::uint64_t word = 0;
  for (std::size_t i = bytes; i-- > 0;) word = word << 8 | static_cast<std::uint64_t>(from[i]);
  return word;
}

// Stores the low `bytes` (at most 8) bytes of a word.
inline void store_short(std::byte* to, std::uint64_t word, std::size_t bytes) {
  if (bytes == 8) {
    std::memcpy(to, &word, 8);
  } else if (bytes >= 4) {
    const auto first = static_cast<std::uint32_t>(word);
    const auto last = static_cast<std::uint32_t>(word >> (8 * (bytes - 4)));
    std::memcpy(to, &first, 4);
    std::memcpy(to + bytes - 4, &last, 4);
  } else {
    for (std::size_t i = 0; i < bytes; ++i, word >>= 8) to[i] = static_cast<std::byte>(word & 0xff);
  }
}

// Like memcpy; fast up to 16 bytes.
inline void copy_short(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 16) {
    std::memcpy(to, from, bytes);
  } else if (bytes > 8) {
    const auto first = load_as<std::uint64_t>(from);
    const auto last = load_as<std::uint64_t>(from + bytes - 8);
    std::memcpy(to, &first, 8);
    std::memcpy(to + bytes - 8, &last, 8);
  } else {
    store_short(to, load_short(from, bytes), bytes);
  }
}

}  // namespace perdura::kv
