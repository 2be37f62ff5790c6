#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace perdura::ycsb {

// Exponential, logarithm and power with the same digits on every machine. The functions of the
// system's libm differ from version to version, and even with the same version between processors
// with and without fused multiplication; one different digit makes a Zipfian generator draw another
// key, and a simulation another history. These use IEEE additions, multiplications and divisions
// only. They err by a few units in the last place, which no workload notices.
//
// Arguments and results must be normal numbers: zeros, infinities and NaN are not handled.

namespace detail {

// ln 2 in two parts; the first has trailing zeros, so that its product with an exponent is exact.
inline constexpr double kLn2High = 0x1.62e42fefa38p-1;
inline constexpr double kLn2Low = 0x1.ef35793c7673p-45;

inline double power_of_two(std::int64_t exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

template <std::size_t kTerms>
constexpr std::array<double, kTerms> inverse_factorials() {
  std::array<double, kTerms> inverses{};
  double factorial = 1.0;
  for (std::size_t i = 0; i < kTerms; ++i) {
    inverses[i] = 1.0 / factorial;
    factorial *= static_cast<double>(i + 1);
  }
  return inverses;
}

// (e^x - 1) / x for |x| <= 1/2, by the Taylor series.
inline double exp_slope(double x) {
  constexpr std::size_t kTerms = 16;
  constexpr auto kInverses = inverse_factorials<kTerms>();
  double sum = kInverses[kTerms - 1];
  for (std::size_t i = kTerms - 1; i-- > 1;) sum = sum * x + kInverses[i];
  return sum;
}

}  // namespace detail

// The natural logarithm; 0 < x.
inline double portable_log(double x) {
  using namespace detail;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  // x = 2^exponent * mantissa, the mantissa between the square roots of 1/2 and of 2.
  constexpr std::uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdULL;
  const std::int64_t exponent = static_cast<std::int64_t>(bits - kSqrtHalf) >> 52;
  const double mantissa =
      std::bit_cast<double>(bits - (static_cast<std::uint64_t>(exponent) << 52));
  // ln m = 2 artanh((m - 1) / (m + 1)), whose argument is at most 0.172.
  const double ratio = (mantissa - 1.0) / (mantissa + 1.0);
  const double square = ratio * ratio;
  double sum = 1.0 / 23;
  for (int denominator = 21; denominator >= 3; denominator -= 2) {
    sum = sum * square + 1.0 / denominator;
  }
  const double of_mantissa = 2.0 * (ratio + ratio * square * sum);
  const double whole = static_cast<double>(exponent);
  return whole * kLn2High + (of_mantissa + whole * kLn2Low);
}

// e^x; |x| < 700.
inline double portable_exp(double x) {
  using namespace detail;
  constexpr double kInverseLn2 = 0x1.71547652b82fep0;
  const auto exponent = static_cast<std::int64_t>(x * kInverseLn2 + (x < 0 ? -0.5 : 0.5));
  const double whole = static_cast<double>(exponent);
  const double rest = (x - whole * kLn2High) - whole * kLn2Low;
  return power_of_two(exponent) * (1.0 + rest * exp_slope(rest));
}

// e^x - 1, exact also where e^x is close to 1; |x| < 700.
inline double portable_expm1(double x) {
  return x < 0.5 && x > -0.5 ? x * detail::exp_slope(x) : portable_exp(x) - 1.0;
}

// base^exponent; 0 < base.
inline double portable_pow(double base, double exponent) {
  return portable_exp(exponent * portable_log(base));
}

}  // namespace perdura::ycsb
