#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "bench/ycsb/portable_math.h"
#include "platform/base/random.h"
#include "services/kv/fnv.h"

namespace perdura::ycsb {

// YCSB's Zipfian constant, theta below.
inline constexpr double kYcsbZipfianConstant = 0.99;

// The generalized harmonic number zeta(n, theta) = sum of i^-theta for i = 1..n, 0 < theta < 1.
//
// Beyond sixteen terms the sum is evaluated by Euler-Maclaurin, whose remainder lies below the
// precision of a double there; so it costs about 45 ns for any n, where adding up 10^8 terms takes
// a second. That makes a growing Zipfian cheap and a table of known sums pointless.
class Zeta {
 public:
  // Precondition: 0 < theta < 1.
  explicit Zeta(double theta);

  struct Terms {
    double zeta;         // the sum
    double n_to_1_less;  // n^(1 - theta), which the Zipfian formula needs too
  };
  Terms terms(std::uint64_t n) const;
  double operator()(std::uint64_t n) const { return terms(n).zeta; }

 private:
  static constexpr int kExactTerms = 16;

  double theta_;
  double tail_start_ = 0.0;  // the part of the Euler-Maclaurin formula that does not depend on n
  double power_of_exact_ = 0.0;  // kExactTerms^(1 - theta)
  std::array<double, kExactTerms + 1> exact_{};
};

// Ranks 0, 1, 2, ... with falling popularity: the formula of Gray et al., "Quickly Generating
// Billion-Record Synthetic Databases", SIGMOD 1994, as YCSB uses it. Ranks 0 and 1 have
// exactly the Zipfian probabilities; the others follow a smooth curve through them, given by
// cumulative(). With one million items and theta 0.99, rank 0 gets 6.5 % of the draws and the first
// tenth of the ranks 83 %. (Published counts of 86 % rank the keys by what two million draws
// happened to hit, which favors the lucky ones.)
//
// The draws are the same on every machine, because only IEEE operations make them, see
// portable_math.h. A draw takes about 5 ns where 1 / (1 - theta) is a whole number, as for 0.99,
// and 27 ns otherwise.
class Zipfian {
 public:
  // Precondition: items > 0, 0 < theta < 1.
  explicit Zipfian(std::uint64_t items, double theta = kYcsbZipfianConstant);
  // With a zeta that is known already, for reproducing generators that fixed it as a constant.
  Zipfian(std::uint64_t items, double theta, double zeta);

  // The next rank, in [0, items()).
  std::uint64_t next(Random& random) const {
    const double uniform = random.uniform_unit();
    const double scaled = uniform * zeta_;
    if (scaled < 1.0) return 0;
    if (scaled < zeta_of_two_) return 1;
    const double base = eta_ * uniform - eta_ + 1.0;
    const double rank = items_as_double_ * power(base);
    // Rounding can lift the very last uniform number to items().
    return std::min(static_cast<std::uint64_t>(static_cast<std::int64_t>(rank)), items_ - 1);
  }

  // Changes the number of items; the popularity of the ranks is adapted at a constant cost of about
  // 45 ns. (YCSB keeps the old item count in one factor here, so its growing generator is skewed.)
  void set_items(std::uint64_t items);

  std::uint64_t items() const { return items_; }

  // The probability that a draw is below `rank`: what the formula yields, up to rounding.
  double cumulative(std::uint64_t rank) const;

 private:
  void derive(double zeta, double n_to_1_less);

  double power(double base) const {
    if (whole_alpha_ == 0) return portable_pow(base, alpha_);
    double result = 1.0;
    for (unsigned exponent = whole_alpha_;;) {
      if ((exponent & 1U) != 0) result *= base;
      exponent >>= 1U;
      if (exponent == 0) return result;
      base *= base;
    }
  }

  Zeta zeta_function_;
  double theta_;
  double alpha_;
  unsigned whole_alpha_;  // alpha_ when it is a small whole number, else 0
  std::uint64_t items_;
  double items_as_double_ = 0.0;
  double zeta_ = 0.0;
  double zeta_of_two_;
  double eta_ = 0.0;
};

// YCSB's "zipfian": popular items scattered over the item space. A Zipfian rank out of 10^10 is
// hashed, and the hash is reduced modulo the number of items. The head is flatter than the plain
// distribution's, because the ranks span far more than the items: of one million items the most
// popular gets 3.8 % and the most popular tenth 55 % (60 % when the keys are ranked by two million
// draws).
class ScrambledZipfian {
 public:
  // YCSB counts the ranks from 0 to 10^10 inclusive, but its zeta is the sum of 10^10 terms,
  // rounding errors of the summation included; both are kept as they are.
  static constexpr std::uint64_t kRanks = 10'000'000'001ULL;
  static constexpr double kZeta = 26.46902820178302;

  // Precondition: items > 0, 0 < theta < 1. Other constants than 0.99 use their own zeta.
  explicit ScrambledZipfian(std::uint64_t items, double theta = kYcsbZipfianConstant);

  std::uint64_t next(Random& random) const { return kv::ycsb_hash(ranks_.next(random)) % items_; }

  std::uint64_t items() const { return items_; }
  const Zipfian& ranks() const { return ranks_; }

 private:
  Zipfian ranks_;
  std::uint64_t items_;
};

// YCSB's "latest": the newest of a growing number of items is the most popular.
class Latest {
 public:
  explicit Latest(std::uint64_t items, double theta = kYcsbZipfianConstant) : age_(items, theta) {}

  // The next item, in [0, items()); items() - 1 is the newest.
  std::uint64_t next(Random& random) const { return age_.items() - 1 - age_.next(random); }

  void set_items(std::uint64_t items) {
    if (items != age_.items()) age_.set_items(items);
  }
  std::uint64_t items() const { return age_.items(); }

 private:
  Zipfian age_;
};

}  // namespace perdura::ycsb
