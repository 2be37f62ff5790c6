#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace perdura::kv {

// Self-describing values: a reader can tell whether a single put of that key wrote all of the
// value. So every get can be verified, including torn and misplaced values, without a table of the
// values written. The bytes look random, so that no layer below profits from compressible data, and
// an update flips about half of the bits.
//
// Layout of a value of at least 16 bytes:
//
//   bytes 0-4   key number            bytes 8-15   version
//   bytes 5-7   check of both         bytes 16-    words computed from both
//
// A value whose bytes stem from two puts passes the check with a probability of 2^-24 if the
// boundary lies in the header, and practically never otherwise.
//
// Shorter values hold the low half of their bytes (rounded down) of the version, then a hash of the
// key number and that part of the version. A foreign or torn value of n bytes passes with a
// probability of 2^-(8 * ceil(n / 2)): for one byte 1 in 256, for eight bytes 1 in 4 thousand
// million. An empty value always passes.

inline constexpr std::size_t kLeastWithKey = 16;

// Precondition: key_number < 2^40 (KeyFormat::kMaxCapacity).
void fill_value(std::span<std::byte> value, std::uint64_t key_number, std::uint64_t version);

// The version of the put that wrote this value for this key, or nullopt if no put can have written
// it. For values below 16 bytes, only the part of the version that the value holds.
std::optional<std::uint64_t> check_value(std::span<const std::byte> value,
                                         std::uint64_t key_number);

// The version that a value holds, or the part of it that fits into a short value; not verified.
std::uint64_t stored_version(std::span<const std::byte> value);
// The key number that a value holds; not verified. Returns nullopt if the value is too short.
std::optional<std::uint64_t> stored_key_number(std::span<const std::byte> value);

}  // namespace perdura::kv
