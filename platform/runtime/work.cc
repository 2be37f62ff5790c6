#include "platform/runtime/work.h"

#include <isa-l/crc.h>

namespace perdura {

std::uint32_t crc32(std::uint32_t seed, std::span<const std::byte> data) {
  charge(Work::crc32, data.size());
  return crc32_gzip_refl(seed, reinterpret_cast<const unsigned char*>(data.data()), data.size());
}

namespace {
__extension__ using Wide = unsigned __int128;

// One multiplication to 128 bits, folded: mixes every input bit into every output bit.
std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}
}  // namespace

std::uint64_t hash64(std::span<const std::byte> data, std::uint64_t seed) {
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
    h = fold(h ^ word ^ kRoot2, kGolden);
  }
  if (left > 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, left);
    h = fold(h ^ word ^ kRoot2, kGolden);
  }
  return fold(h ^ kGolden, kRoot2);
}

}  // namespace perdura
