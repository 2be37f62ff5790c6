#include "services/kv/small_store.h"

#include <utility>

#include "platform/base/error.h"

namespace perdura::services {

std::span<const std::uint64_t> make_small(const kv::KvSystem& system, std::size_t number,
                                          kv::KvConfig& config) {
  for (; number < system.small_stores.size(); ++number) {
    const kv::SmallStore& small = system.small_stores[number];
    kv::KvConfig candidate = config;
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
  for (const kv::KvPartition* partition : open_) add(*partition, sums);
  std::map<std::string, std::uint64_t, std::less<>> named;
  for (std::size_t i = 0; i < sums.size(); ++i) named.emplace(system_.events[i].name, sums[i]);
  return named;
}

void StoreEvents::add(const kv::KvPartition& partition, std::vector<std::uint64_t>& sums) {
  const std::vector<std::uint64_t> events = partition.events();
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += events.at(i);
}

}  // namespace perdura::services
