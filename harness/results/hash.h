// A stable hash of bytes that never changes between machines or versions. It tells configurations
// apart and detects accidental damage; it is not cryptographic.
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
