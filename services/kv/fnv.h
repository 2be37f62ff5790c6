#pragma once

#include <cstdint>

namespace perdura::kv {

// FNV-1a, 64 bits, over the eight octets of a number, least significant first: the hash that YCSB
// applies to record numbers and to Zipfian ranks.
//
// It is injective on numbers below 2^40; the uniqueness of key names relies on that. Proof: where
// two inputs first differ, the states differ by less than 511; each later step multiplies the
// difference by the prime and adds at most 510. A collision of two five-octet inputs would need
// small coefficients, not all zero, with e0 p^4 + e1 p^3 + e2 p^2 + e3 p + e4 = 0 modulo 2^64;
// there are none (a test enumerates them). The three zero octets that follow only multiply by an
// odd number, which is invertible.
constexpr std::uint64_t fnv1a_64(std::uint64_t number) {
  constexpr std::uint64_t kPrime = 0x100000001b3ULL;
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  int octet = 0;
  if (number >> 40 == 0) {
    // One multiplication for the three zero octets; this saves a quarter of the time for most
    // numbers.
    for (; octet < 5; ++octet, number >>= 8) hash = (hash ^ (number & 0xff)) * kPrime;
    return hash * (kPrime * kPrime * kPrime);
  }
  for (; octet < 8; ++octet, number >>= 8) hash = (hash ^ (number & 0xff)) * kPrime;
  return hash;
}

// YCSB keeps hashes in signed variables and takes their absolute value. For -2^63, whose absolute
// value a signed 64-bit variable cannot hold, this yields 2^63. A branch would be mispredicted half
// of the time.
constexpr std::uint64_t ycsb_fold(std::uint64_t hash) {
  const std::uint64_t all_if_negative = 0 - (hash >> 63);
  return (hash ^ all_if_negative) - all_if_negative;
}

constexpr std::uint64_t ycsb_hash(std::uint64_t number) { return ycsb_fold(fnv1a_64(number)); }

}  // namespace perdura::kv
