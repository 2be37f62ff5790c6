#include "services/kv/crash_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "services/boundaries.h"

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
constexpr std::size_t kMostSteps = 8;  // steps of a generated client between two failures

template <class T, std::size_t N>
const T& one_of(const std::array<T, N>& alternatives, pmem::Choices& choices) {
  return alternatives[choices.choose(N)];
}

KvCrashPlan generated_store(pmem::Choices& choices) {
  constexpr std::array<std::uint64_t, 6> kKeyCounts{1, 2, 2, 3, 6, 12};
  // A key within a line, and keys whose entries span lines.
  constexpr std::array<Bytes, 4> kKeySizes{16, 16, 24, 40};
  // Within a line, over several lines, and over several packets.
  constexpr std::array<Bytes, 6> kLengths{64, 64, 16, 40, 200, 4500};
  KvCrashPlan plan;
  plan.keys = one_of(kKeyCounts, choices);
  // Mostly one length, since stores treat records of one length best.
  const std::size_t lengths = 1 + choices.choose(2);
  for (std::size_t i = 0; i < lengths; ++i) plan.lengths.push_back(one_of(kLengths, choices));
  plan.key_size = one_of(kKeySizes, choices);
  plan.crowded = choices.choose(4) == 3;
  plan.servers = choices.choose(4) == 3 ? 2 : 1;
  return plan;
}

KvClientPlan generated_client(std::uint64_t keys, pmem::Choices& choices) {
  constexpr std::array<Picoseconds, 4> kPauses{Picoseconds{}, Picoseconds{}, Microseconds(2),
                                               Microseconds(20)};
  constexpr std::array<Picoseconds, 6> kDelays{Picoseconds{}, Picoseconds{},   Picoseconds{},
                                               Picoseconds{}, Microseconds(5), Microseconds(25)};
  // The operations of a kind of client, and how often; 0 of the choices is no operation.
  constexpr std::size_t kNothing = 1;
  constexpr std::array<std::array<Kind, 6>, 3> kMixes{
      {{Kind::put, Kind::put, Kind::get, Kind::get, Kind::erase, Kind::put},
       {Kind::get, Kind::get, Kind::get, Kind::get, Kind::get, Kind::get},
       {Kind::put, Kind::put, Kind::put, Kind::put, Kind::put, Kind::erase}}};
  KvClientPlan client;
  const auto& mix = one_of(kMixes, choices);
  client.pause = one_of(kPauses, choices);
  client.late = one_of(kDelays, choices);
  client.at_once = choices.choose(4) == 3;
  for (std::size_t step = 0; step < kMostSteps; ++step) {
    const std::size_t what = choices.choose(kNothing + mix.size());
    const std::uint64_t key = choices.choose(keys);
    if (what >= kNothing) client.steps.push_back({mix[what - kNothing], key});
  }
  return client;
}

}  // namespace

KvCrashPlan equal_writers_plan(std::uint64_t seed) {
  KvCrashPlan plan{.keys = kKeys, .writes = kWrites, .lengths = {kValueSize}};
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
  KvCrashPlan plan{.keys = kKeys, .writes = kWrites, .lengths = {kValueSize}};
  KvClientPlan writer;
  writer.steps = {{Kind::put, 0}, {Kind::put, 0}, {Kind::erase, 0}, {Kind::put, 0}};
  writer.late = kLate;
  KvClientPlan reader;
  reader.pause = kBetweenGets;
  reader.watches = true;
  plan.clients = {{writer}, {reader}};
  return plan;
}

KvCrashPlan generated_plan(pmem::Tape& tape, std::uint32_t failures) {
  constexpr std::uint32_t kMostClients = 3;
  KvCrashPlan plan = generated_store(tape.stream("store"));
  if (pmem::Choices& ends = tape.stream("lengths"); ends.choose(2) == 1) {
    for (Bytes& length : plan.lengths) length = length_around_a_boundary(ends);
  }
  plan.workers = tape.stream("workers").choose(4) == 3 ? 2 : 1;
  plan.clients.resize(kMostClients);
  for (std::uint32_t number = 0; number < kMostClients; ++number) {
    pmem::Choices& choices = tape.stream(fmt::format("client-{}", number));
    const bool takes_part = choices.choose(3) > 0;
    for (std::uint32_t epoch = 0; epoch <= failures; ++epoch) {
      plan.clients[number].push_back(takes_part ? generated_client(plan.keys, choices)
                                                : KvClientPlan{});
    }
  }
  // The inspector writes each key once.
  plan.writes = std::max(kWrites, kMostClients * (failures + 1) * kMostSteps + plan.keys);
  return plan;
}

}  // namespace perdura::services
