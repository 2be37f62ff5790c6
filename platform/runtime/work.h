// The kinds of CPU work that the cost model charges for. The helpers below simply do the work on
// real platforms; on `sim` they also charge the simulated core for it, so that systems contain no
// costs. A task's charges add up; the simulated time passes when the task next suspends or posts an
// operation.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "platform/base/units.h"

namespace perdura {

enum class Work : std::uint8_t {
  crc32,     // per call and per byte
  copy,      // ordinary memory to ordinary memory, per call and per byte
  hash,      // hashing a key, per call and per byte
  compare,   // comparing keys, per call and per byte
  dispatch,  // parsing a request and choosing its handler, per call
};
inline constexpr int kWorkKinds = 5;

class CostMeter {
 public:
  virtual ~CostMeter() = default;
  virtual void charge(Work work, Bytes bytes) = 0;
  // For locks whose waiting is modelled: the current time as the running task sees it, and spinning
  // until a time.
  virtual Time now() const = 0;
  virtual void spin_until(Time when) = 0;
};

// Set by `sim` while a task of a simulated thread runs; null on real platforms.
inline thread_local CostMeter* cost_meter = nullptr;

inline void charge(Work work, Bytes bytes = 0) {
  if (cost_meter != nullptr) [[unlikely]] {
    cost_meter->charge(work, bytes);
  }
}

// CRC-32 (IEEE 802.3, reflected), seeded so that checksums can be chained or bound to a context.
std::uint32_t crc32(std::uint32_t seed, std::span<const std::byte> data);

namespace detail {
// Multiplies to 128 bits and XORs the halves, which mixes every input bit into every output bit.
inline std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const auto product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}
}  // namespace detail

// A 64-bit hash of a key, the same on every platform and in every run. If the compiler knows the
// length of the span, it is a few instructions.
inline std::uint64_t hash64(std::span<const std::byte> data, std::uint64_t seed = 0) {
  charge(Work::hash, data.size());
  // Odd constants: the golden ratio and the square root of two, as 64-bit fractions.
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
  constexpr std::uint64_t kRoot2 = 0x6A09E667F3BCC909;
  std::uint64_t h = seed ^ (data.size() * kGolden);
  const std::byte* p = data.data();
  std::size_t left = data.size();
  for (; left >= 8; p += 8, left -= 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    h = detail::fold(h ^ word ^ kRoot2, kGolden);
  }
  if (left > 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, left);
    h = detail::fold(h ^ word ^ kRoot2, kGolden);
  }
  return detail::fold(h ^ kGolden, kRoot2);
}

inline void copy_bytes(std::span<std::byte> to, std::span<const std::byte> from) {
  charge(Work::copy, from.size());
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

inline bool equal_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  charge(Work::compare, a.size());
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

}  // namespace perdura
