#include "services/kv/crash_store.h"

#include <cstring>
#include <utility>

#include "services/kv/small_store.h"
#include "services/kv/value.h"

namespace perdura::services {

namespace {

constexpr std::uint32_t kSpannedServers = 2;
constexpr std::uint32_t kSessions = 6;

}  // namespace

// No byte after the first 16 of a longer key is zero for every key, so that the survival of each
// cache line of an index entry over several lines matters.
CrashKey crash_key(std::uint64_t number, Bytes size) {
  constexpr Bytes kShort = 16;
  CrashKey key(size);
  std::memcpy(key.data(), &number, sizeof number);
  for (Bytes i = kShort; i < size; ++i) key[i] = static_cast<std::byte>(number + i);
  return key;
}

std::uint64_t CrashFormat::key_number(kv::Key key) {
  std::uint64_t number = 0;
  std::memcpy(&number, key.data(), sizeof number);
  return number;
}

std::optional<std::uint64_t> CrashFormat::version(kv::Key key, kv::Value value) {
  const auto version = kv::check_value(value, key_number(key));
  if (!version || value.size() != lengths_.of(*version)) return std::nullopt;
  return version;
}

CrashStore small_crash_store(const kv::KvSystem& system, const CrashSetup& setup,
                             const KvCrashPlan& plan, std::size_t number) {
  const CrashLengths lengths(system, plan);
  kv::KvConfig config{.key_size = system.fit_key(plan.key_size),
                      .value_size = lengths.typical(),
                      .max_value_size = lengths.longest(),
                      .records = plan.crowded ? 1 + plan.keys / 4 : plan.keys,
                      .writes = plan.writes,
                      .sessions = kSessions,
                      .parameters = setup.parameters};
  if (system.spans_servers) config.servers = kSpannedServers;
  if (system.shares_partition) config.workers = plan.workers;
  if (setup.correct) {
    config.put_method = methods::choose(
        {{setup.model, pmem::Medium::dram}, {setup.model, pmem::Medium::pm}}, *system.put, {});
  }
  const std::span<const std::uint64_t> filling = make_small(system, number, config);
  return {std::move(config), filling};
}

void get_filling(KvCrashPlan& plan, std::span<const std::uint64_t> filling, std::size_t first) {
  for (auto& of_client : plan.clients) {
    for (KvClientPlan& client : of_client) {
      for (KvStep& step : client.steps) {
        if (step.kind != history::Kind::get) continue;
        step.key = filling[(first + step.key) % filling.size()];
      }
    }
  }
}

}  // namespace perdura::services
