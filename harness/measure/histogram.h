#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "harness/measure/statistics.h"

namespace perdura::measure {

// A latency histogram to three significant decimal digits, from 1 ns to one hour; all values are in
// nanoseconds. Count, sum, minimum and maximum are exact.
//
// The layout is log-linear: values below 2,048 have a bucket each; above, every power of two is
// divided into 1,024 buckets of equal width. So a bucket is narrower than a thousandth of the
// values in it. Values above one hour are counted in the last bucket, whose upper end is then
// unknown, and saturated() tells how many there were.
//
// One object belongs to one thread: give every client its own and merge them at the end, which
// loses nothing. (Two threads that share an atomic histogram slow each other down tenfold and
// more.) The first 256 values are kept as a list, four bytes each, so that ten thousand clients can
// each have one. Beyond that a histogram takes half a KiB for each power of two that has values,
// and 128 bytes for each 16 neighboring buckets with values; with all buckets, 290 KB.
class Histogram {
 public:
  static constexpr std::uint64_t kMaxNanoseconds = 3'600'000'000'000ULL;

  // A range of values that cannot be told apart, both ends inclusive.
  struct Bucket {
    std::uint64_t low;
    std::uint64_t high;
    std::uint64_t count;
  };

  void record(std::uint64_t nanoseconds) { record(nanoseconds, 1); }

  // Records the same value `count` times.
  void record(std::uint64_t nanoseconds, std::uint64_t count) {
    if (count == 0) return;
    const std::uint64_t counted = std::min(nanoseconds, kMaxNanoseconds);
    counts_.add(index_of(counted), count);
    count_ += count;
    sum_ += Sum{nanoseconds} * count;
    // Rare, so a branch costs less than a store each time.
    if (nanoseconds < min_) [[unlikely]]
      min_ = nanoseconds;
    if (nanoseconds > max_) [[unlikely]]
      max_ = nanoseconds;
    if (nanoseconds > kMaxNanoseconds) [[unlikely]]
      saturated_ += count;
  }

  // Adds all of another histogram's values, as if this one had recorded them itself.
  void merge(const Histogram& other);

  void reset();

  std::uint64_t count() const { return count_; }
  std::uint64_t saturated() const { return saturated_; }
  // 0 if no value was recorded.
  std::uint64_t min() const { return count_ == 0 ? 0 : min_; }
  std::uint64_t max() const { return max_; }
  double sum() const { return static_cast<double>(sum_); }
  double mean() const { return count_ == 0 ? 0.0 : sum() / static_cast<double>(count_); }

  // The smallest recorded value v such that at least `percent` (0 to 100) of the samples are <= v.
  // Returns the upper end of v's bucket, so that the result never flatters, but at most max(); that
  // is less than 0.1 % above v. percentile(0) belongs to the smallest sample, percentile(100) is
  // max(). Returns 0 if no value was recorded.
  std::uint64_t percentile(double percent) const;

  // The same, or nullopt if fewer than ten samples lie beyond the percentile. With k samples beyond
  // it, a percentile's position is uncertain by about sqrt(k) samples: with ten, the share beyond
  // it is known to a third; with fewer, the figure says more about the worst few events than about
  // the system. A 99.9th percentile needs 10,000 samples.
  std::optional<std::uint64_t> percentile_if_enough(double percent) const;

  struct Range {
    std::uint64_t low;
    std::uint64_t high;
  };

  // The range in which the true percentile lies with at least the given confidence, whatever the
  // distribution, if the samples are independent. Its ends are two samples, chosen by
  // percentile_ranks. Bucketing only widens it: it reaches from the lower end of the first sample's
  // bucket to the upper end of the second's, within min() and max(). Returns nullopt if there are
  // too few samples; ten beyond the percentile on either side suffice for 95 %.
  std::optional<Range> percentile_interval(double percent, double confidence = 0.95) const;

  // The interval that contains the true mean with the given confidence, by Student's t
  // distribution, if the samples are independent. Their deviation is taken to be the largest that
  // the buckets allow, so that bucketing never makes the interval too narrow. Returns nullopt below
  // 100 samples: latencies are skewed, and the mean of fewer is not distributed normally enough
  // (with 30 exponential samples, such an interval contains the mean in 92.5 % of the cases, with
  // 100 in 94 %).
  std::optional<Interval> mean_interval(double confidence = 0.95) const;

  // Calls visit(Bucket) for each bucket that is not empty, in ascending order.
  template <typename Visit>
  void for_each_bucket(Visit visit) const {
    counts_.for_each([&](std::size_t index, std::uint64_t count) {
      visit(Bucket{low_of(index), high_of(index), count});
    });
  }

  // The whole state as words that can be sent to another process: a header, then pairs of bucket
  // and count for nonempty buckets.
  std::vector<std::uint64_t> serialize() const;

  // The error describes what is wrong with the words; the format has a version and redundant
  // counts.
  static tl::expected<Histogram, std::string> deserialize(std::span<const std::uint64_t> words);

  friend bool operator==(const Histogram&, const Histogram&) = default;

 private:
  __extension__ typedef unsigned __int128 Sum;

  static constexpr int kSubBucketBits = 11;  // 2^11 is the first power of two above 2 * 10^3
  static constexpr std::uint64_t kSubBuckets = std::uint64_t{1} << kSubBucketBits;
  static constexpr std::uint64_t kHalf = kSubBuckets / 2;

  // The position of the highest bit selects the width of the bucket, the ten bits below it the
  // bucket. The bits of kSubBuckets - 1 give the small values width 1 without a branch.
  static constexpr std::size_t index_of(std::uint64_t value) {
    const int shift = std::bit_width(value | (kSubBuckets - 1)) - kSubBucketBits;
    return static_cast<std::size_t>((static_cast<std::uint64_t>(shift) * kHalf) + (value >> shift));
  }
  static constexpr int shift_of(std::size_t index) {
    return index < kSubBuckets ? 0 : static_cast<int>(index / kHalf) - 1;
  }
  static constexpr std::uint64_t low_of(std::size_t index) {
    const int shift = shift_of(index);
    return (index - static_cast<std::uint64_t>(shift) * kHalf) << shift;
  }
  static constexpr std::uint64_t high_of(std::size_t index) {
    return low_of(index) + (std::uint64_t{1} << shift_of(index)) - 1;
  }
  // index_of(kMaxNanoseconds) + 1, spelled out because a class cannot call its own functions yet.
  static constexpr int kMaxShift = std::bit_width(kMaxNanoseconds) - kSubBucketBits;
  static constexpr std::size_t kBuckets = kMaxShift * kHalf + (kMaxNanoseconds >> kMaxShift) + 1;

  // The number of values in each bucket. A few values are a list of bucket indices in order of
  // arrival: a client with few operations has each in a bucket far from the others. Many values are
  // counted in a tree that has no nodes where all counters are 0.
  class Counts {
   public:
    Counts() = default;
    Counts(const Counts& other) { *this = other; }
    Counts(Counts&&) noexcept = default;
    Counts& operator=(const Counts& other);
    Counts& operator=(Counts&&) noexcept = default;
    ~Counts() = default;

    void add(std::size_t index, std::uint64_t count) {
      if (tree_ == nullptr) [[unlikely]]
        return add_to_few(index, count);
      (*tree_)[index] += count;
    }
    // Calls visit(index, count) for each bucket that is not empty, in ascending order.
    template <typename Visit>
    void for_each(Visit visit) const {
      if (tree_ != nullptr) return tree_->for_each(visit);
      std::vector<std::uint32_t> sorted = few_;
      std::sort(sorted.begin(), sorted.end());
      for (auto run = sorted.begin(); run != sorted.end();) {
        const auto end = std::upper_bound(run, sorted.end(), *run);
        visit(std::size_t{*run}, static_cast<std::uint64_t>(end - run));
        run = end;
      }
    }
    bool operator==(const Counts& other) const;

   private:
    static constexpr std::size_t kMostFew = 256;

    class Tree {
     public:
      Tree() = default;
      Tree(const Tree& other);
      Tree& operator=(const Tree&) = delete;
      ~Tree() = default;

      std::uint64_t& operator[](std::size_t index) {
        std::unique_ptr<Branch>& branch = branches_[index / kBranch];
        if (branch == nullptr) [[unlikely]]
          branch = std::make_unique<Branch>();
        std::unique_ptr<Leaf>& leaf = branch->leaves[index % kBranch / kLeaf];
        if (leaf == nullptr) [[unlikely]]
          leaf = std::make_unique<Leaf>();
        return leaf->counts[index % kLeaf];
      }
      template <typename Visit>
      void for_each(Visit visit) const {
        for (std::size_t i = 0; i < branches_.size(); ++i) {
          if (branches_[i] == nullptr) continue;
          for (std::size_t j = 0; j < branches_[i]->leaves.size(); ++j) {
            const Leaf* const leaf = branches_[i]->leaves[j].get();
            if (leaf == nullptr) continue;
            for (std::size_t k = 0; k < kLeaf; ++k) {
              if (leaf->counts[k] != 0) visit(i * kBranch + j * kLeaf + k, leaf->counts[k]);
            }
          }
        }
      }

     private:
      static constexpr std::size_t kLeaf = 16;
      static constexpr std::size_t kBranch = 1024;
      // On cache lines that no other thread's histogram shares.
      struct alignas(64) Leaf {
        std::array<std::uint64_t, kLeaf> counts{};
      };
      struct alignas(64) Branch {
        std::array<std::unique_ptr<Leaf>, kBranch / kLeaf> leaves;
      };
      std::array<std::unique_ptr<Branch>, (kBuckets + kBranch - 1) / kBranch> branches_;
    };

    void add_to_few(std::size_t index, std::uint64_t count);

    std::vector<std::uint32_t> few_;  // empty once there is a tree
    std::unique_ptr<Tree> tree_;
  };

  // The range of buckets that can be nonempty. Precondition: count_ > 0.
  std::size_t first_index() const { return index_of(std::min(min_, kMaxNanoseconds)); }
  std::size_t last_index() const { return index_of(std::min(max_, kMaxNanoseconds)); }

  // The rank, from 1 to count_, of the percentile's sample. Precondition: count_ > 0.
  std::uint64_t rank_of(double percent) const;
  // The index of the bucket that holds the sample of this rank. Precondition: 0 < rank <= count_.
  std::size_t index_at(std::uint64_t rank) const;
  // The ends of a nonempty bucket, restricted to where samples can lie.
  std::uint64_t lowest_in(std::size_t index) const { return std::max(low_of(index), min_); }
  std::uint64_t highest_in(std::size_t index) const {
    return index == last_index() ? max_ : high_of(index);
  }

  Counts counts_;
  std::uint64_t count_ = 0;
  Sum sum_ = 0;
  std::uint64_t min_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t max_ = 0;
  std::uint64_t saturated_ = 0;
};

}  // namespace perdura::measure
