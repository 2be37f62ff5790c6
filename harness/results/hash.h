// A hash of bytes that is the same everywhere and for ever: tells configurations apart, and damage
// from what was written. Not against malice.
#pragma once

#include <cstdint>
#include <string_view>

namespace perdura::harness {

// FNV-1a, 64 bits.
constexpr std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace perdura::harness
