#include "services/kv/crash_plan.h"

#include <algorithm>
#include <iterator>

namespace perdura::services {

namespace {

using history::Kind;

constexpr std::uint64_t kKeys = 4;
constexpr std::uint32_t kClients = 2;
constexpr std::size_t kSteps = 16;  // operations of a client, besides the puts that create the keys
constexpr std::uint64_t kWrites = 8 * kSteps;
constexpr Bytes kValueSize = 64;
// The delay of each operation of a slow writer. It leaves time for several gets in between.
constexpr Picoseconds kLate = Microseconds(25);
constexpr Picoseconds kBetweenGets = Microseconds(6);

template <class T, std::size_t N>
const T& one_of(const std::array<T, N>& alternatives, pmem::Choices& choices) {
  return alternatives[choices.choose(N)];
}

}  // namespace

KvCrashPlan equal_writers_plan(std::uint64_t seed) {
  KvCrashPlan plan{.keys = kKeys, .writes = kWrites, .lengths = {kValueSize}, .clients = {}};
  for (std::uint32_t client = 0; client < kClients; ++client) {
    KvClientPlan& one = plan.clients.emplace_back().emplace_back();
    // Every key is created first, so that both clients use the same keys.
    for (std::uint64_t key = client; key < kKeys; key += kClients) {
      one.steps.push_back({Kind::put, key});
    }
    pmem::RandomChoices random(seed * kClients + client);
    constexpr Kind kKinds[] = {Kind::put, Kind::put, Kind::put, Kind::put, Kind::get, Kind::erase};
    for (std::size_t i = 0; i < kSteps; ++i) {
      const Kind kind = kKinds[random.choose(std::size(kKinds))];
      one.steps.push_back({kind, random.choose(kKeys)});
    }
  }
  return plan;
}

KvCrashPlan slow_writer_plan() {
  KvCrashPlan plan{.keys = kKeys, .writes = kWrites, .lengths = {kValueSize}, .clients = {}};
  KvClientPlan writer;
  writer.steps = {{Kind::put, 0}, {Kind::put, 0}, {Kind::erase, 0}, {Kind::put, 0}};
  writer.late = kLate;
  KvClientPlan reader;
  reader.pause = kBetweenGets;
  reader.watches = true;
  plan.clients = {{writer}, {reader}};
  return plan;
}

KvCrashPlan generated_plan(pmem::Choices& choices, std::uint32_t failures) {
  constexpr std::uint32_t kMostClients = 3;
  constexpr std::uint64_t kMostKeys = 3;
  constexpr std::size_t kMostSteps = 8;
  // Within a line, over several lines, and over several packets.
  constexpr std::array<Bytes, 6> kLengths{64, 64, 16, 40, 200, 4500};
  constexpr std::array<Picoseconds, 4> kPauses{Picoseconds{}, Picoseconds{}, Microseconds(2),
                                               Microseconds(20)};
  constexpr std::array<Picoseconds, 6> kDelays{Picoseconds{}, Picoseconds{},   Picoseconds{},
                                               Picoseconds{}, Microseconds(5), Microseconds(25)};
  // What clients of a kind do, and how often; 0 of the choices is no operation.
  constexpr std::size_t kNothing = 1;
  constexpr std::array<std::array<Kind, 6>, 3> kMixes{
      {{Kind::put, Kind::put, Kind::get, Kind::get, Kind::erase, Kind::put},
       {Kind::get, Kind::get, Kind::get, Kind::get, Kind::get, Kind::get},
       {Kind::put, Kind::put, Kind::put, Kind::put, Kind::put, Kind::erase}}};

  KvCrashPlan plan;
  plan.keys = 1 + choices.choose(kMostKeys);
  // Mostly one length, since stores treat records of one length best.
  for (std::size_t lengths = 1 + choices.choose(2); lengths > 0; --lengths) {
    plan.lengths.push_back(one_of(kLengths, choices));
  }
  plan.clients.resize(1 + choices.choose(kMostClients));
  for (auto& client : plan.clients) {
    for (std::uint32_t epoch = 0; epoch <= failures; ++epoch) {
      KvClientPlan& one = client.emplace_back();
      const auto& mix = one_of(kMixes, choices);
      one.pause = one_of(kPauses, choices);
      one.late = one_of(kDelays, choices);
      for (std::size_t step = 0; step < kMostSteps; ++step) {
        const std::size_t what = choices.choose(kNothing + mix.size());
        const std::uint64_t key = choices.choose(plan.keys);
        if (what >= kNothing) one.steps.push_back({mix[what - kNothing], key});
      }
    }
  }
  // The inspector writes each key once.
  plan.writes = std::max(kWrites, kMostClients * (failures + 1) * kMostSteps + plan.keys);
  return plan;
}

}  // namespace perdura::services
