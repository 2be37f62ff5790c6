// Which planted fault a program has: the one that the environment variable PERDURA_FAULT names, or
// none. Part of the tree that tests/faults/corpus.py writes, never of the product.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <type_traits>

// What a fault leaves unused, or does twice, is no reason not to compile.
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-value"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wextra"

namespace perdura::planted {

constexpr std::uint64_t hash_of(std::string_view name) {  // FNV-1a
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3;
  return hash;
}

inline std::uint64_t chosen() {
  static const std::uint64_t hash = [] {
    const char* const name = std::getenv("PERDURA_FAULT");
    return name == nullptr ? 0 : hash_of(name);
  }();
  return hash;
}

struct Fault {
  std::uint64_t hash;
  consteval Fault(const char* name) : hash(hash_of(name)) {}
};

}  // namespace perdura::planted

// Constants are computed without faults.
constexpr bool perdura_fault(perdura::planted::Fault fault) {
  return !std::is_constant_evaluated() && perdura::planted::chosen() == fault.hash;
}
