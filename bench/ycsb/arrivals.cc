#include "bench/ycsb/arrivals.h"

#include "bench/ycsb/portable_math.h"

namespace perdura::ycsb {
namespace {

constexpr std::uint64_t kPicosecondsPerSecond = 1'000'000'000'000;

// A random stream of the seed that differs from all streams of the operation generators
// (generator.cc).
std::uint64_t arrival_stream(std::uint32_t client, std::uint32_t stretch) {
  return (std::uint64_t{stretch} + 1) << 40 | client;
}

}  // namespace

Arrivals::Arrivals(ArrivalProcess process, std::uint64_t rate, std::uint64_t seed,
                   std::uint32_t client, std::uint32_t clients, std::uint32_t stretch)
    : process_(process),
      rate_(rate),
      clients_(clients),
      random_(seed, arrival_stream(client, stretch)),
      position_(client),
      mean_gap_(static_cast<double>(kPicosecondsPerSecond) * clients / static_cast<double>(rate)) {}

std::uint64_t Arrivals::next() {
  if (process_ == ArrivalProcess::poisson) {
    // 1 - u is never 0. Rounding to picoseconds changes the mean by less than any run can detect.
    const double gap = -portable_log(1.0 - random_.uniform_unit()) * mean_gap_;
    return last_ += static_cast<std::uint64_t>(gap + 0.5);
  }
  // Computed from the number of the operation instead of the last time, so that rounding errors do
  // not accumulate.
  __extension__ using Wide = unsigned __int128;
  const Wide time = Wide{position_} * kPicosecondsPerSecond / rate_;
  position_ += clients_;
  return static_cast<std::uint64_t>(time);
}

}  // namespace perdura::ycsb
