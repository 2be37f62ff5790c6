#include "services/objects/crash_plan.h"

#include <fmt/format.h>

#include <array>

#include "services/boundaries.h"

namespace perdura::services {

namespace {

using Kind = ObjectsSpecification::Operation::Kind;

template <class T, std::size_t N>
const T& one_of(const std::array<T, N>& alternatives, pmem::Choices& choices) {
  return alternatives[choices.choose(N)];
}

// Lengths within a line, within an entry of a table, and over several lines.
constexpr std::array<Bytes, 3> kUsualLengths{64, 16, 304};

// An operation on a key, and whether it is a direct transfer.
struct Work {
  Kind kind{};
  bool direct = false;
};
constexpr std::array<Work, 8> kWorks{{{Kind::put},
                                      {Kind::get},
                                      {Kind::put, true},
                                      {Kind::get, true},
                                      {Kind::put_part, true},
                                      {Kind::put_part, true},
                                      {Kind::erase},
                                      {Kind::put}}};

ObjectsClientPlan generated_objects_client(const ObjectsPlan& plan, pmem::Choices& choices) {
  constexpr std::size_t kMostSteps = 6;
  constexpr std::array<Picoseconds, 4> kPauses{Picoseconds{}, Picoseconds{}, Microseconds(2),
                                               Microseconds(20)};
  constexpr std::array<Picoseconds, 4> kDelays{Picoseconds{}, Picoseconds{}, Microseconds(5),
                                               Microseconds(25)};
  ObjectsClientPlan client;
  client.pause = one_of(kPauses, choices);
  client.late = one_of(kDelays, choices);
  for (std::size_t i = 0; i < kMostSteps; ++i) {
    constexpr std::size_t kNothing = 1;
    const std::size_t what = choices.choose(kNothing + kWorks.size() + 1);
    const std::size_t pool = choices.choose(plan.pools);
    const std::size_t key = choices.choose(plan.keys);
    if (what < kNothing) continue;
    const bool removes = what == kNothing + kWorks.size();
    const Work work = removes ? Work{Kind::remove} : kWorks[what - kNothing];
    client.steps.push_back({work.kind, pool, key, work.direct});
  }
  return client;
}

}  // namespace

ObjectsPlan writers_plan(std::uint64_t seed) {
  constexpr std::uint64_t kWriters = 2;
  constexpr std::size_t kSteps = 9;
  ObjectsPlan plan{.pools = 1, .keys = 2, .lengths = {kUsualLengths.begin(), kUsualLengths.end()}};
  for (std::uint64_t client = 0; client < kWriters; ++client) {
    ObjectsClientPlan& one = plan.clients.emplace_back().emplace_back();
    one.steps.push_back({Kind::put, 0, client});
    pmem::RandomChoices random(seed * kWriters + client);
    for (std::size_t i = 0; i < kSteps; ++i) {
      const Work& work = one_of(kWorks, random);
      one.steps.push_back({work.kind, 0, random.choose(plan.keys), work.direct});
    }
  }
  return plan;
}

ObjectsPlan pools_plan() {
  ObjectsPlan plan{.pools = 2, .keys = 2, .lengths = {64, 304}};
  const std::vector<ObjectsStep> removes{
      {Kind::put, 0, 0},       {Kind::put, 0, 1, true}, {Kind::remove, 0, 0},
      {Kind::put, 0, 1, true}, {Kind::get, 0, 0},       {Kind::get, 0, 1},
      {Kind::remove, 1, 0},    {Kind::remove, 0, 0},    {Kind::put, 0, 0}};
  const std::vector<ObjectsStep> uses{{Kind::put, 1, 0},       {Kind::put_part, 1, 0, true},
                                      {Kind::put, 1, 1, true}, {Kind::get, 1, 0, true},
                                      {Kind::erase, 1, 1},     {Kind::get, 0, 0},
                                      {Kind::put, 1, 1},       {Kind::get, 1, 1}};
  plan.clients = {{{removes}}, {{uses}}};
  return plan;
}

ObjectsPlan generated_objects_plan(pmem::Tape& tape, std::uint32_t failures) {
  constexpr std::uint32_t kMostClients = 3;
  constexpr std::array<std::size_t, 4> kPools{1, 1, 2, 2};
  constexpr std::array<std::size_t, 4> kKeys{1, 2, 2, 3};
  // A value of the last length takes several packets.
  constexpr std::array<Bytes, 6> kLengths{64, 64, 16, 304, 304, 4504};
  ObjectsPlan plan;
  pmem::Choices& store = tape.stream("store");
  plan.pools = one_of(kPools, store);
  plan.keys = one_of(kKeys, store);
  const std::size_t lengths = 1 + store.choose(2);
  for (std::size_t i = 0; i < lengths; ++i) plan.lengths.push_back(one_of(kLengths, store));
  plan.crowded = store.choose(4) == 3;
  plan.is_generated = true;
  if (pmem::Choices& ends = tape.stream("lengths"); ends.choose(2) == 1) {
    for (Bytes& length : plan.lengths) length = length_around_a_boundary(ends);
  }
  plan.clients.resize(kMostClients);
  for (std::uint32_t number = 0; number < kMostClients; ++number) {
    pmem::Choices& choices = tape.stream(fmt::format("client-{}", number));
    const bool takes_part = choices.choose(3) > 0;
    for (std::uint32_t epoch = 0; epoch <= failures; ++epoch) {
      plan.clients[number].push_back(takes_part ? generated_objects_client(plan, choices)
                                                : ObjectsClientPlan{});
    }
  }
  return plan;
}

}  // namespace perdura::services
