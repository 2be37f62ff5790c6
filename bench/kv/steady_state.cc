#include "bench/kv/steady_state.h"

#include <array>
#include <cmath>

namespace perdura::bench {
namespace {

double seconds(Picoseconds time) { return static_cast<double>(time.count()) * 1e-12; }

}  // namespace

bool SteadyState::add(Time at, std::uint64_t operations) {
  window_.push_back({at, operations});
  if (window_.size() <= kPieces) return false;
  if (window_.size() > kPieces + 1) window_.pop_front();
  // Samples may be late, so pieces differ in length.
  std::array<double, kPieces> middles{};
  std::array<double, kPieces> rates{};
  double mean_middle = 0;
  double mean_rate = 0;
  for (std::size_t i = 0; i < kPieces; ++i) {
    const Sample& begin = window_[i];
    const Sample& end = window_[i + 1];
    middles[i] = seconds((begin.at - window_.front().at) + (end.at - begin.at) / 2);
    rates[i] = static_cast<double>(end.operations - begin.operations) / seconds(end.at - begin.at);
    mean_middle += middles[i] / kPieces;
    mean_rate += rates[i] / kPieces;
  }
  if (mean_rate == 0) return false;
  double products = 0;
  double squares = 0;
  for (std::size_t i = 0; i < kPieces; ++i) {
    products += (middles[i] - mean_middle) * (rates[i] - mean_rate);
    squares += (middles[i] - mean_middle) * (middles[i] - mean_middle);
  }
  const double change = products / squares * seconds(at - window_.front().at);
  return std::abs(change) <= slope_ * mean_rate;
}

}  // namespace perdura::bench
