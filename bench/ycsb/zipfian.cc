#include "bench/ycsb/zipfian.h"

#include <cmath>

namespace perdura::ycsb {
namespace {

// The derivatives' part of Euler-Maclaurin for f(x) = x^-theta: sum of B_2k / (2k)! f^(2k-1)(x),
// five terms. At x = 16 the first omitted term is below 10^-17.
double euler_maclaurin_correction(double f_of_x, double x, double theta) {
  constexpr std::array<double, 5> kCoefficients = {1.0 / 12, -1.0 / 720, 1.0 / 30'240,
                                                   -1.0 / 1'209'600, 1.0 / 47'900'160};
  double derivative = -theta * f_of_x / x;
  double factor = theta;
  double sum = 0.0;
  for (double coefficient : kCoefficients) {
    sum += coefficient * derivative;
    derivative *= (factor + 1) * (factor + 2) / (x * x);
    factor += 2;
  }
  return sum;
}

unsigned whole_number_or_zero(double alpha) {
  constexpr double kLargest = 1'000'000.0;
  const double nearest = std::nearbyint(alpha);
  // 1 / (1 - 0.99) is 100 plus some rounding of 0.99; a difference this small moves no rank.
  const bool is_whole = nearest <= kLargest && std::abs(alpha - nearest) < 1e-9 * nearest;
  return is_whole ? static_cast<unsigned>(nearest) : 0;
}

}  // namespace

Zeta::Zeta(double theta) : theta_(theta) {
  for (int i = 1; i <= kExactTerms; ++i) {
    exact_[static_cast<std::size_t>(i)] =
        exact_[static_cast<std::size_t>(i - 1)] + portable_pow(static_cast<double>(i), -theta);
  }
  const double start = kExactTerms;
  const double f_of_start = portable_pow(start, -theta);
  power_of_exact_ = portable_pow(start, 1.0 - theta);
  tail_start_ =
      exact_.back() - f_of_start / 2 - euler_maclaurin_correction(f_of_start, start, theta);
}

Zeta::Terms Zeta::terms(std::uint64_t n) const {
  if (n <= kExactTerms) return {exact_[n], portable_pow(static_cast<double>(n), 1.0 - theta_)};
  const double end = static_cast<double>(n);
  // n^(1 - theta) through expm1, because the integral below divides its difference by 1 - theta and
  // would lose digits for a theta close to 1.
  const double growth = portable_expm1((1.0 - theta_) * portable_log(end / kExactTerms));
  const double n_to_1_less = power_of_exact_ * (growth + 1.0);
  const double f_of_end = n_to_1_less / end;
  const double integral = power_of_exact_ * growth / (1.0 - theta_);
  return {tail_start_ + integral + f_of_end / 2 + euler_maclaurin_correction(f_of_end, end, theta_),
          n_to_1_less};
}

Zipfian::Zipfian(std::uint64_t items, double theta) : Zipfian(items, theta, Zeta(theta)(items)) {}

Zipfian::Zipfian(std::uint64_t items, double theta, double zeta)
    : zeta_function_(theta),
      theta_(theta),
      alpha_(1.0 / (1.0 - theta)),
      whole_alpha_(whole_number_or_zero(alpha_)),
      items_(items),
      zeta_of_two_(zeta_function_(2)) {
  derive(zeta, zeta_function_.terms(items).n_to_1_less);
}

void Zipfian::set_items(std::uint64_t items) {
  items_ = items;
  const Zeta::Terms terms = zeta_function_.terms(items);
  derive(terms.zeta, terms.n_to_1_less);
}

void Zipfian::derive(double zeta, double n_to_1_less) {
  items_as_double_ = static_cast<double>(items_);
  zeta_ = zeta;
  // With one or two items, the first two comparisons of a draw decide, and eta would be 0 / 0.
  eta_ = items_ <= 2
             ? 0.0
             : (1.0 - portable_pow(2.0, 1.0 - theta_) / n_to_1_less) / (1.0 - zeta_of_two_ / zeta);
}

double Zipfian::cumulative(std::uint64_t rank) const {
  if (rank == 0) return 0.0;
  if (rank >= items_) return 1.0;
  if (rank == 1) return 1.0 / zeta_;
  if (rank == 2) return zeta_of_two_ / zeta_;
  const double share = static_cast<double>(rank) / items_as_double_;
  return 1.0 - (1.0 - portable_pow(share, 1.0 - theta_)) / eta_;
}

ScrambledZipfian::ScrambledZipfian(std::uint64_t items, double theta)
    : ranks_(theta == kYcsbZipfianConstant ? Zipfian(kRanks, theta, kZeta)
                                           : Zipfian(kRanks, theta)),
      items_(items) {}

}  // namespace perdura::ycsb
