#include "services/kv/small_store.h"

#include <utility>

#include "platform/base/error.h"

namespace perdura::services {

std::span<const std::uint64_t> make_small(const systems::KvSystem& system, std::size_t number,
                                          systems::KvConfig& config) {
  for (; number < system.small_stores.size(); ++number) {
    const systems::SmallStore& small = system.small_stores[number];
    systems::KvConfig candidate = config;
    candidate.records += small.filling.size();
    candidate.writes += small.filling.size();
    for (const Setting& setting : small.parameters) {
      candidate.parameters.emplace(setting.name, setting.value.value());
    }
    try {
      system.check(candidate);
    } catch (const UsageError&) {
      continue;
    }
    config = std::move(candidate);
    return small.filling;
  }
  return {};
}

std::map<std::string, std::uint64_t, std::less<>> StoreEvents::counts() const {
  std::vector<std::uint64_t> sums = closed_;
  for (const systems::KvPartition* partition : open_) add(*partition, sums);
  std::map<std::string, std::uint64_t, std::less<>> named;
  for (std::size_t i = 0; i < sums.size(); ++i) named.emplace(system_.events[i].name, sums[i]);
  return named;
}

void StoreEvents::add(const systems::KvPartition& partition, std::vector<std::uint64_t>& sums) {
  const std::vector<std::uint64_t> events = partition.events();
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += events.at(i);
}

}  // namespace perdura::services
