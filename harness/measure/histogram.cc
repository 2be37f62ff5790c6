#include "harness/measure/histogram.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace perdura::measure {
namespace {

// "PerdHis", followed by the version of the format.
constexpr std::uint64_t kFormat = 0x5065726448697301ULL;
constexpr std::size_t kHeaderWords = 7;

}  // namespace

Histogram::Counts::Tree::Tree(const Tree& other) {
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    if (other.branches_[i] == nullptr) continue;
    branches_[i] = std::make_unique<Branch>();
    for (std::size_t j = 0; j < branches_[i]->leaves.size(); ++j) {
      const auto& leaf = other.branches_[i]->leaves[j];
      if (leaf != nullptr) branches_[i]->leaves[j] = std::make_unique<Leaf>(*leaf);
    }
  }
}

Histogram::Counts& Histogram::Counts::operator=(const Counts& other) {
  if (this == &other) return *this;
  few_ = other.few_;
  tree_ = other.tree_ == nullptr ? nullptr : std::make_unique<Tree>(*other.tree_);
  return *this;
}

void Histogram::Counts::add_to_few(std::size_t index, std::uint64_t count) {
  if (count <= kMostFew - few_.size()) {
    few_.insert(few_.end(), count, static_cast<std::uint32_t>(index));
    return;
  }
  tree_ = std::make_unique<Tree>();
  for (const std::uint32_t earlier : few_) ++(*tree_)[earlier];
  few_ = {};
  (*tree_)[index] += count;
}

bool Histogram::Counts::operator==(const Counts& other) const {
  const auto list = [](const Counts& counts) {
    std::vector<std::pair<std::size_t, std::uint64_t>> all;
    counts.for_each(
        [&](std::size_t index, std::uint64_t count) { all.emplace_back(index, count); });
    return all;
  };
  return list(*this) == list(other);
}

void Histogram::merge(const Histogram& other) {
  if (other.count_ == 0) return;
  other.counts_.for_each(
      [&](std::size_t index, std::uint64_t count) { counts_.add(index, count); });
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  saturated_ += other.saturated_;
}

void Histogram::reset() {
  if (count_ == 0) return;
  counts_ = {};
  count_ = 0;
  sum_ = 0;
  min_ = std::numeric_limits<std::uint64_t>::max();
  max_ = 0;
  saturated_ = 0;
}

std::uint64_t Histogram::rank_of(double percent) const {
  const double clamped = std::clamp(percent, 0.0, 100.0);
  const double position = clamped * static_cast<double>(count_) / 100.0;
  // 99.9 has no exact binary representation, so 99.9 % of 1,000 may come out slightly above 999.
  // That must not raise the rank to 1,000.
  const double rank = std::ceil(position * (1.0 - 0x1.0p-50));
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(rank), 1, count_);
}

std::size_t Histogram::index_at(std::uint64_t rank) const {
  std::uint64_t seen = 0;
  std::optional<std::size_t> found;
  counts_.for_each([&](std::size_t index, std::uint64_t count) {
    seen += count;
    if (seen >= rank && !found) found = index;
  });
  return found.value_or(last_index());
}

std::uint64_t Histogram::percentile(double percent) const {
  if (count_ == 0) return 0;
  return highest_in(index_at(rank_of(percent)));
}

std::optional<std::uint64_t> Histogram::percentile_if_enough(double percent) const {
  constexpr std::uint64_t kSamplesBeyond = 10;
  if (count_ == 0 || count_ - rank_of(percent) < kSamplesBeyond) return std::nullopt;
  return percentile(percent);
}

std::optional<Histogram::Range> Histogram::percentile_interval(double percent,
                                                               double confidence) const {
  const auto ranks = percentile_ranks(count_, percent, confidence);
  if (!ranks) return std::nullopt;
  return Range{lowest_in(index_at(ranks->low)), highest_in(index_at(ranks->high))};
}

std::optional<Interval> Histogram::mean_interval(double confidence) const {
  constexpr std::uint64_t kSamples = 100;
  if (count_ < kSamples || !(confidence > 0 && confidence < 1)) return std::nullopt;
  const double middle = mean();
  double squares = 0.0;
  counts_.for_each([&](std::size_t index, std::uint64_t count) {
    const double farthest = std::max(std::abs(static_cast<double>(lowest_in(index)) - middle),
                                     std::abs(static_cast<double>(highest_in(index)) - middle));
    squares += static_cast<double>(count) * farthest * farthest;
  });
  const double samples = static_cast<double>(count_);
  const double margin =
      student_t_critical(count_ - 1, confidence) * std::sqrt(squares / (samples - 1) / samples);
  return Interval{middle - margin, middle + margin};
}

std::vector<std::uint64_t> Histogram::serialize() const {
  std::vector<std::uint64_t> words = {kFormat,
                                      count_,
                                      static_cast<std::uint64_t>(sum_),
                                      static_cast<std::uint64_t>(sum_ >> 64),
                                      min_,
                                      max_,
                                      saturated_};
  counts_.for_each([&](std::size_t index, std::uint64_t count) {
    words.push_back(index);
    words.push_back(count);
  });
  return words;
}

tl::expected<Histogram, std::string> Histogram::deserialize(std::span<const std::uint64_t> words) {
  if (words.size() < kHeaderWords || words[0] != kFormat) {
    return tl::unexpected(fmt::format(
        "not a serialized histogram of this version ({} words); were both processes built alike?",
        words.size()));
  }
  Histogram histogram;
  histogram.count_ = words[1];
  histogram.sum_ = words[2] | Sum{words[3]} << 64;
  histogram.min_ = words[4];
  histogram.max_ = words[5];
  histogram.saturated_ = words[6];

  const std::span<const std::uint64_t> pairs = words.subspan(kHeaderWords);
  if (pairs.size() % 2 != 0)
    return tl::unexpected(std::string("histogram cut off within a bucket"));
  if (histogram.count_ == 0) {
    if (!pairs.empty()) return tl::unexpected(std::string("histogram of no samples with buckets"));
    return Histogram();
  }
  if (histogram.min_ > histogram.max_) {
    return tl::unexpected(std::string("histogram whose minimum exceeds its maximum"));
  }

  std::uint64_t total = 0;
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    const std::uint64_t index = pairs[i];
    const bool is_ascending = i == 0 || index > pairs[i - 2];
    if (!is_ascending || index >= kBuckets) {
      return tl::unexpected(fmt::format("histogram with a misplaced bucket {}", index));
    }
    histogram.counts_.add(index, pairs[i + 1]);
    total += pairs[i + 1];
  }
  if (total != histogram.count_) {
    return tl::unexpected(
        fmt::format("histogram of {} samples with {} in its buckets", histogram.count_, total));
  }
  if (pairs[0] != histogram.first_index() || pairs[pairs.size() - 2] != histogram.last_index()) {
    return tl::unexpected(std::string("histogram without buckets for its minimum and maximum"));
  }
  return histogram;
}

}  // namespace perdura::measure
