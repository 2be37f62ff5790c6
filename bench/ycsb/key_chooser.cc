#include "bench/ycsb/key_chooser.h"

#include <algorithm>

#include "bench/ycsb/portable_math.h"

namespace perdura::ycsb {
namespace {

// Twice the number of records that the run is expected to create: YCSB's margin for an uneven draw.
std::uint64_t expected_new_keys(const WorkloadSpec& spec) {
  const double expected =
      static_cast<double>(spec.operation_count) * spec.share(OperationKind::insert) * 2.0;
  const double limit = static_cast<double>(spec.loaded_keys());
  return static_cast<std::uint64_t>(std::min(expected, limit));
}

}  // namespace

KeyChooser::KeyChooser(const WorkloadSpec& spec, const KeyNumbering& numbering)
    : numbering_(numbering), distribution_(distribution_of(spec, numbering)) {}

KeyChooser::Distribution KeyChooser::distribution_of(const WorkloadSpec& spec,
                                                     const KeyNumbering& numbering) {
  // An empty store has no keys to draw, but a workload of inserts alone still needs the object.
  const std::uint64_t loaded = std::max<std::uint64_t>(numbering.loaded, 1);
  switch (spec.request_distribution) {
    case RequestDistribution::uniform:
      break;
    case RequestDistribution::zipfian:
      return ScrambledZipfian(loaded + expected_new_keys(spec), spec.zipfian_constant);
    case RequestDistribution::plain_zipfian:
      return Zipfian(loaded, spec.zipfian_constant);
    case RequestDistribution::latest:
      return Latest(loaded, spec.zipfian_constant);
    case RequestDistribution::sequential:
      return Sequential{numbering.client % loaded};
    case RequestDistribution::hotspot:
      return Hotspot{
          static_cast<std::uint64_t>(static_cast<double>(loaded) * spec.hotspot_data_fraction),
          spec.hotspot_operation_fraction};
    case RequestDistribution::exponential:
      return Exponential{static_cast<double>(loaded) * spec.exponential_fraction /
                         -portable_log(1.0 - spec.exponential_percentile / 100.0)};
  }
  return Uniform{};
}

std::uint64_t KeyChooser::next_of_others(Random& random, std::uint64_t own_new_keys) {
  return std::visit([&](auto& distribution) { return draw(distribution, random, own_new_keys); },
                    distribution_);
}

std::uint64_t KeyChooser::draw(Uniform&, Random& random, std::uint64_t) const {
  return numbering_.first_key + random.uniform_below(numbering_.loaded);
}

std::uint64_t KeyChooser::draw(Zipfian& zipfian, Random& random, std::uint64_t) const {
  return numbering_.first_key + zipfian.next(random);
}

std::uint64_t KeyChooser::draw(Latest& latest, Random& random, std::uint64_t own_new_keys) const {
  latest.set_items(numbering_.loaded + own_new_keys);
  return numbering_.known_key(latest.next(random));
}

// Client i of n takes every n-th key, beginning with the i-th, and wraps around at the end.
std::uint64_t KeyChooser::draw(Sequential& sequential, Random&, std::uint64_t) const {
  const std::uint64_t position = sequential.position;
  sequential.position += numbering_.clients;
  if (sequential.position >= numbering_.loaded) {
    sequential.position = numbering_.client % numbering_.loaded;
  }
  return numbering_.first_key + position;
}

std::uint64_t KeyChooser::draw(Hotspot& hotspot, Random& random, std::uint64_t) const {
  const std::uint64_t cold_keys = numbering_.loaded - hotspot.hot_keys;
  const bool wants_hot = random.uniform_unit() < hotspot.operation_fraction;
  const bool is_hot = cold_keys == 0 || (wants_hot && hotspot.hot_keys != 0);
  if (is_hot) return numbering_.first_key + random.uniform_below(hotspot.hot_keys);
  return numbering_.first_key + hotspot.hot_keys + random.uniform_below(cold_keys);
}

std::uint64_t KeyChooser::draw(Exponential& exponential, Random& random,
                               std::uint64_t own_new_keys) const {
  const std::uint64_t known = numbering_.loaded + own_new_keys;
  for (;;) {
    // 1 - u is never 0, whose logarithm would be infinite.
    const double age = -portable_log(1.0 - random.uniform_unit()) * exponential.mean;
    if (age < static_cast<double>(known)) {
      return numbering_.known_key(known - 1 - static_cast<std::uint64_t>(age));
    }
  }
}

}  // namespace perdura::ycsb
