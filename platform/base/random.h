#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

namespace perdura {

// One step of SplitMix64's output function: a bijection of 64-bit words that spreads every input
// bit over the whole output (Steele, Lea and Flood, OOPSLA 2014). The state advances by a fixed odd
// number, so successive calls with the same variable form a generator of their own.
inline std::uint64_t splitmix64(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  std::uint64_t word = state;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
  return word ^ (word >> 31);
}

// The source of randomness of every workload: xoshiro256** (Blackman and Vigna, 2018), seeded
// through SplitMix64. Given the same seed it yields the same numbers on every machine, compiler and
// build type, which the distributions of the standard library do not promise; so use the members
// below, never std::uniform_*_distribution. Cheap to copy; one object belongs to one thread.
class Random {
 public:
  using result_type = std::uint64_t;

  explicit Random(std::uint64_t seed) { fill_state(seed); }

  // Independent streams from one seed, such as one for each client. The stream's number is
  // scattered before it is combined with the seed, so that (seed 1, stream 2) has nothing in common
  // with (seed 2, stream 1).
  Random(std::uint64_t seed, std::uint64_t stream) {
    std::uint64_t stream_state = ~stream;
    fill_state(seed ^ splitmix64(stream_state));
  }

  // Takes the four words of state themselves, which must not all be zero. For comparison with
  // published outputs.
  explicit Random(const std::array<std::uint64_t, 4>& state) : state_(state) {}

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }

  std::uint64_t operator()() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // A whole number in [0, bound), each with exactly the same probability; bound must not be 0.
  // The high half of a 128-bit product selects the number; the few products that would favor some
  // numbers are drawn again (Lemire, 2019), so a division happens only once in a long while.
  std::uint64_t uniform_below(std::uint64_t bound) {
    Product product = Product{(*this)()} * bound;
    if (static_cast<std::uint64_t>(product) < bound) {
      const std::uint64_t surplus = (0 - bound) % bound;
      while (static_cast<std::uint64_t>(product) < surplus) product = Product{(*this)()} * bound;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

  // A number in [0, 1), a multiple of 2^-53: every value is exact, so there is nothing to round.
  double uniform_unit() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

 private:
  __extension__ typedef unsigned __int128 Product;

  void fill_state(std::uint64_t seed) {
    for (std::uint64_t& word : state_) word = splitmix64(seed);
  }

  std::array<std::uint64_t, 4> state_;
};

}  // namespace perdura
