// The state of a system under exploration at one time, as small named numbers: how many puts are
// under way, if a log is being cleaned, how full a store is. Random exploration
// (explore/soak.h) prefers runs with combinations that no earlier run has met, so each number
// should have few values that differ in kind, and an order of magnitude where it counts something.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace perdura::services {

class SystemState {
 public:
  // The order in which numbers are added matters.
  void add(std::string_view name, std::uint64_t number) {
    for (const char letter : name) mix(static_cast<unsigned char>(letter));
    mix(number);
  }
  // Equal combinations have equal digests; different ones hardly ever do.
  std::uint64_t digest() const { return digest_; }

 private:
  void mix(std::uint64_t number) {
    digest_ = (digest_ ^ number) * 0x9E3779B97F4A7C15;
    digest_ ^= digest_ >> 29;
  }

  std::uint64_t digest_ = 0xCBF29CE484222325;
};

// Maps 0, 1 and 2 to themselves, and each larger power-of-two range to one number.
constexpr std::uint64_t magnitude(std::uint64_t count) {
  return count < 3 ? count : static_cast<std::uint64_t>(std::bit_width(count)) + 1;
}

}  // namespace perdura::services
