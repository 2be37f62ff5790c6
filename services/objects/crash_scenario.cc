#include "services/objects/crash_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "platform/base/error.h"
#include "services/boundaries.h"
#include "services/history_scenario.h"
#include "services/late_thread.h"
#include "services/objects/crash_plan.h"
#include "services/objects/specification.h"

namespace perdura::services {

namespace {

using objects::Error;
using Operation = ObjectsSpecification::Operation;
using Kind = Operation::Kind;
using Words = ObjectsSpecification::Words;

constexpr fabric::Address kShard{0, 0};
constexpr std::uint32_t kSessions = 6;
constexpr Picoseconds kLook = Microseconds(1);  // polling interval

constexpr CrashSchedule kSchedules[] = {
    {"writers", "both clients put, write into parts, get and erase, also by direct transfers"},
    {"pools", "one creates and removes pools; the other one puts and gets in another pool"},
};

constexpr Event kEvents[] = {{"removed pools"}, {"parts written"}, {"direct puts"}};

std::string pool_name(std::size_t pool) { return fmt::format("pool-{}", pool); }

std::array<std::byte, kWord> key_of(std::size_t number) {
  std::array<std::byte, kWord> key{};
  std::memcpy(key.data(), &number, sizeof number);
  return key;
}

// Everything that a client has open while it is connected.
struct Connection {
  std::unique_ptr<pmem::Region> memory;  // used for direct transfers
  std::unique_ptr<objects::Session> session;
  objects::DirectMemory direct{};
  std::map<std::size_t, std::unique_ptr<objects::Pool>> pools{};
};

class ObjectsCrashScenario final : public HistoryScenario<ObjectsSpecification> {
 public:
  ObjectsCrashScenario(const objects::System& system, objects::Config config, ObjectsPlan plan)
      : HistoryScenario({plan.pools, plan.keys}),
        system_(system),
        config_(std::move(config)),
        plan_(std::move(plan)),
        longest_(*std::max_element(plan_.lengths.begin(), plan_.lengths.end())),
        versions_(plan_.clients.size() + 1),
        connected_(plan_.clients.size() + 1) {}

  std::uint32_t clients() const override {
    return static_cast<std::uint32_t>(plan_.clients.size());
  }
  std::uint64_t planned_calls(std::size_t failures) const override {
    std::uint64_t calls = 0;
    for (const std::vector<ObjectsClientPlan>& epochs : plan_.clients) {
      if (failures >= epochs.size()) continue;
      const std::vector<ObjectsStep>& steps = epochs[failures].steps;
      // A client opens a pool, and creates it if it is not there, unless it has it open.
      calls += steps.size() + 2 * std::min(steps.size(), plan_.pools);
    }
    return calls;
  }
  Task<> serve(Thread& thread) override;
  Task<> use(Thread& thread, std::uint32_t number) override;
  Task<> inspect(Thread& thread) override;
  std::map<std::string, std::uint64_t, std::less<>> events() const override;
  std::span<const Event> expected_events() const override { return kEvents; }
  void describe(SystemState& state) const override;

 protected:
  void explain(const Call<Operation>& call, CrashCall& shown) const override;
  void snapshot_observations() override {
    HistoryScenario::snapshot_observations();
    kept_versions_ = versions_;
    kept_connected_ = connected_;
  }
  void restore_observations() override {
    HistoryScenario::restore_observations();
    versions_ = kept_versions_;
    connected_ = kept_connected_;
  }

 private:
  Task<> connect(Thread& thread, std::uint32_t number, Connection& connection);
  // Returns false if the shard is gone, as all of the following functions do.
  Task<bool> take(Connection& connection, ObjectsStep step, std::uint32_t number);
  Task<bool> open(Connection& connection, std::size_t pool, std::uint32_t number);
  Task<bool> create(Connection& connection, std::size_t pool, std::uint32_t number);
  Task<bool> remove(Connection& connection, std::size_t pool, std::uint32_t number);
  Task<bool> put(Connection& connection, ObjectsStep step, std::uint32_t number);
  Task<bool> get(Connection& connection, ObjectsStep step, std::uint32_t number);
  Task<bool> erase(Connection& connection, ObjectsStep step, std::uint32_t number);
  Task<bool> read_all(Connection& connection);
  Task<bool> inspect(Connection& connection);

  std::uint64_t next_version(std::uint32_t number) {
    return versions_[number]++ * versions_.size() + number + 1;
  }
  Bytes length_of(std::uint64_t version) const {
    return plan_.lengths[version % plan_.lengths.size()];
  }
  // Records the answer. Returns false if there is none, since the connection has ended.
  template <class T>
  bool end(Calling& calling, const objects::Result<T>& result) {
    return end(calling, result ? std::nullopt : std::optional(result.error()));
  }
  bool end(Calling& calling, std::optional<Error> error);
  std::uint64_t done(Kind kind, std::optional<bool> direct) const;

  const objects::System& system_;
  const objects::Config config_;
  const ObjectsPlan plan_;
  const Bytes longest_;
  std::vector<std::uint64_t> versions_;   // number of values so far, by client
  std::vector<std::uint32_t> connected_;  // how often each client has connected
  std::vector<std::uint64_t> kept_versions_;
  std::vector<std::uint32_t> kept_connected_;
};

Task<> ObjectsCrashScenario::serve(Thread& thread) {
  const std::unique_ptr<objects::Shard> shard = system_.open(thread, "shard", config_);
  if (const std::string wrong = shard->audit(); !wrong.empty()) {
    note_problem(fmt::format("the opened shard contradicts itself: {}", wrong));
  }
  note_serving(thread);
  changed();
  co_await shard->serve();
}

// A shard whose sessions are all in use refuses further clients until it has noticed that earlier
// ones are gone. The inspector repeats its attempt meanwhile.
Task<> ObjectsCrashScenario::connect(Thread& thread, std::uint32_t number, Connection& connection) {
  constexpr int kAttempts = 100;  // longer than a server takes to notice all ends
  for (int attempt = 1; !connection.session; ++attempt) {
    try {
      connection.session = co_await system_.connect(thread, kShard, config_);
    } catch (const PlatformError&) {
      if (number != inspector() || attempt == kAttempts) throw;
    }
    if (!connection.session) co_await sleep_for(kLook);
  }
  connection.memory = thread.node.create_region(
      fmt::format("direct-{}-{}", number, connected_[number]), longest_, pmem::Medium::dram);
  connection.direct = connection.session->register_direct_memory(*connection.memory).value();
}

Task<> ObjectsCrashScenario::use(Thread& thread, std::uint32_t number) {
  const ObjectsClientPlan& plan = plan_.clients[number].at(connected_[number]++);
  if (plan.steps.empty()) co_return;
  LateThread late(thread, plan.late);
  Connection connection;
  co_await connect(late.thread(), number, connection);
  for (const ObjectsStep& step : plan.steps) {
    if (!co_await take(connection, step, number)) co_return;
    if (plan.pause > Picoseconds{}) co_await sleep_for(plan.pause);
  }
}

// Waits until the clients have noticed the failure, then reads all keys, puts and removes, and
// reads all keys again.
Task<> ObjectsCrashScenario::inspect(Thread& thread) {
  while (clients_at_work() > 0) co_await sleep_for(kLook);
  Connection connection;
  co_await connect(thread, inspector(), connection);
  if (!co_await inspect(connection)) {
    note_problem("the connection to the recovered shard breaks");
  }
}

Task<bool> ObjectsCrashScenario::inspect(Connection& connection) {
  if (!co_await read_all(connection)) co_return false;
  for (std::size_t pool = 0; pool < plan_.pools; ++pool) {
    for (std::size_t key = 0; key < plan_.keys; ++key) {
      const ObjectsStep step{Kind::put, pool, key, key % 2 == 1};
      if (!co_await take(connection, step, inspector())) co_return false;
    }
  }
  if (!co_await read_all(connection)) co_return false;
  if (!co_await remove(connection, 0, inspector())) co_return false;
  co_return co_await read_all(connection);
}

// Pools that do not exist are recorded as such.
Task<bool> ObjectsCrashScenario::read_all(Connection& connection) {
  for (std::size_t pool = 0; pool < plan_.pools; ++pool) {
    if (!co_await open(connection, pool, inspector())) co_return false;
    for (std::size_t key = 0; connection.pools.contains(pool) && key < plan_.keys; ++key) {
      const ObjectsStep step{Kind::get, pool, key, key % 2 == 0};
      if (!co_await get(connection, step, inspector())) co_return false;
    }
  }
  co_return true;
}

// --- steps ---------------------------------------------------------------------------------------

Task<bool> ObjectsCrashScenario::take(Connection& connection, ObjectsStep step,
                                      std::uint32_t number) {
  if (step.kind == Kind::remove) co_return co_await remove(connection, step.pool, number);
  bool answered = co_await open(connection, step.pool, number);
  if (answered && !connection.pools.contains(step.pool)) {
    answered = co_await create(connection, step.pool, number);
  }
  // There may be too little room, or another client may have created the pool meanwhile.
  if (!answered || !connection.pools.contains(step.pool)) co_return answered;
  if (step.kind == Kind::get) {
    answered = co_await get(connection, step, number);
  } else if (step.kind == Kind::erase) {
    answered = co_await erase(connection, step, number);
  } else {
    answered = co_await put(connection, step, number);
  }
  co_return answered;
}

Task<bool> ObjectsCrashScenario::open(Connection& connection, std::size_t pool,
                                      std::uint32_t number) {
  if (connection.pools.contains(pool)) co_return true;
  Calling calling(*this, {.kind = Kind::open, .pool = pool}, number);
  auto opened = co_await connection.session->open_pool(pool_name(pool), {});
  if (opened) connection.pools[pool] = std::move(*opened);
  co_return end(calling, opened);
}

Task<bool> ObjectsCrashScenario::create(Connection& connection, std::size_t pool,
                                        std::uint32_t number) {
  Calling calling(*this, {.kind = Kind::create, .pool = pool}, number);
  auto created = co_await connection.session->create_pool(pool_name(pool), config_.memory,
                                                          {.create_only = true});
  if (created) connection.pools[pool] = std::move(*created);
  co_return end(calling, created);
}

Task<bool> ObjectsCrashScenario::remove(Connection& connection, std::size_t pool,
                                        std::uint32_t number) {
  if (const auto open = connection.pools.find(pool); open != connection.pools.end()) {
    const auto closed = co_await open->second->close();
    connection.pools.erase(open);
    if (!closed) co_return false;
  }
  Calling calling(*this, {.kind = Kind::remove, .pool = pool}, number);
  co_return end(calling, co_await connection.session->delete_pool(pool_name(pool)));
}

// A part is the second half of the whole words of a value with this version's length.
Task<bool> ObjectsCrashScenario::put(Connection& connection, ObjectsStep step,
                                     std::uint32_t number) {
  const std::uint64_t version = next_version(number);
  const Bytes length = length_of(version);
  const bool part = step.kind == Kind::put_part;
  const std::size_t whole = length / kWord;
  const std::size_t first = part ? whole / 2 : 0;
  const Words filled(whole + 1, version);
  const auto bytes = std::as_bytes(std::span(filled))
                         .subspan(first * kWord, part ? (whole - first) * kWord : length);
  Calling calling(*this,
                  {.kind = step.kind,
                   .pool = step.pool,
                   .key = step.key,
                   .direct = step.direct,
                   .first = first,
                   .words = ObjectsSpecification::words_of(bytes)},
                  number);
  objects::Pool& pool = *connection.pools.at(step.pool);
  const auto key = key_of(step.key);
  if (!part && !step.direct) co_return end(calling, co_await pool.put(key, bytes, {}));
  std::copy(bytes.begin(), bytes.end(), connection.memory->data());
  const objects::DirectBuffer from{connection.direct, 0, bytes.size()};
  if (!part) co_return end(calling, co_await pool.put_direct(key, from, {}));
  co_return end(calling, co_await pool.put_direct_offset(key, first * kWord, from));
}

Task<bool> ObjectsCrashScenario::get(Connection& connection, ObjectsStep step,
                                     std::uint32_t number) {
  Calling calling(*this,
                  {.kind = Kind::get, .pool = step.pool, .key = step.key, .direct = step.direct},
                  number);
  objects::Pool& pool = *connection.pools.at(step.pool);
  const auto key = key_of(step.key);
  if (step.direct) {
    const auto got = co_await pool.get_direct(key, {connection.direct, 0, longest_});
    if (got) {
      calling.operation().words =
          ObjectsSpecification::words_of(std::span(connection.memory->data(), *got));
    }
    co_return end(calling, got);
  }
  const auto got = co_await pool.get(key);
  if (got) calling.operation().words = ObjectsSpecification::words_of(*got);
  co_return end(calling, got);
}

Task<bool> ObjectsCrashScenario::erase(Connection& connection, ObjectsStep step,
                                       std::uint32_t number) {
  Calling calling(*this, {.kind = Kind::erase, .pool = step.pool, .key = step.key}, number);
  const auto key = key_of(step.key);
  co_return end(calling, co_await connection.pools.at(step.pool)->erase(key));
}

// --- the record ----------------------------------------------------------------------------------

bool ObjectsCrashScenario::end(Calling& calling, std::optional<Error> error) {
  if (error == Error::disconnected) return false;
  if (error == Error::out_of_space && !plan_.crowded) {
    note_problem("the shard is full, though it has room");
  }
  calling.operation().error = error;
  calling.end();
  return true;
}

std::uint64_t ObjectsCrashScenario::done(Kind kind, std::optional<bool> direct) const {
  return static_cast<std::uint64_t>(
      std::count_if(history().begin(), history().end(), [&](const ClientCall<Operation>& one) {
        const Operation& operation = one.call.operation;
        return one.client != inspector() && one.call.answered && !operation.error &&
               operation.kind == kind && operation.direct == direct.value_or(operation.direct);
      }));
}

std::map<std::string, std::uint64_t, std::less<>> ObjectsCrashScenario::events() const {
  std::map<std::string, std::uint64_t, std::less<>> events{
      {std::string(kEvents[0].name), done(Kind::remove, std::nullopt)},
      {std::string(kEvents[1].name), done(Kind::put_part, std::nullopt)},
      {std::string(kEvents[2].name), done(Kind::put, true)}};
  if (!plan_.is_generated) return events;
  BoundariesMet met("values", ~Bytes{0});
  std::uint64_t other_lengths = 0;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> lengths;  // by pool and key, in words
  for (const ClientCall<Operation>& one : history()) {
    const Operation& operation = one.call.operation;
    if (operation.kind != Kind::put || !one.call.answered || operation.error) continue;
    const std::size_t in_part = ObjectsSpecification::bytes_in_part(operation.words.back());
    met.note(ObjectsSpecification::whole_words(operation.words) * kWord + in_part);
    std::size_t& before = lengths[{operation.pool, operation.key}];
    if (before != 0 && before != operation.words.size()) ++other_lengths;
    before = operation.words.size();
  }
  met.add_to(events);
  events["values in the place of others of another length"] = other_lengths;
  return events;
}

// Describes the operations under way, which of them are direct, and how much the inspector has
// found.
void ObjectsCrashScenario::describe(SystemState& state) const {
  CrashScenario::describe(state);
  std::uint64_t kinds = 0;
  std::uint64_t found = 0;
  for (const ClientCall<Operation>& one : history()) {
    const Operation& operation = one.call.operation;
    if (!one.call.answered) {
      kinds |= std::uint64_t{1} << (2 * static_cast<unsigned>(operation.kind) + operation.direct);
    }
    if (one.client == inspector() && operation.kind == Kind::get && !operation.words.empty())
      ++found;
  }
  state.add("under way", kinds);
  state.add("found", magnitude(found));
}

// Each pool is an object of its own, since operations on different pools are independent.
void ObjectsCrashScenario::explain(const Call<Operation>& call, CrashCall& shown) const {
  const Operation& operation = call.operation;
  shown.object = operation.pool;
  shown.what = ObjectsSpecification::what(operation);
  if (!operation.words.empty()) {
    const auto bytes = std::as_bytes(std::span(operation.words))
                           .first(ObjectsSpecification::whole_words(operation.words) * kWord);
    shown.values.push_back({operation.words.front(), {bytes.begin(), bytes.end()}});
  }
  if (call.answered) shown.told = ObjectsSpecification::told(operation);
}

// The configuration of a shard that is as small as the system can be, with room for the plan's
// values unless the plan is crowded.
objects::Config small_shard(const objects::System& system, const CrashSetup& setup,
                            const ObjectsPlan& plan) {
  constexpr Bytes kForPool = 4 * KiB;  // besides the pool's values
  const Bytes longest = *std::max_element(plan.lengths.begin(), plan.lengths.end());
  const std::size_t values = plan.crowded ? 1 : plan.keys + plan.clients.size();
  objects::Config config{.memory = plan.pools * (kForPool + 2 * values * (longest + 512)),
                         .max_message_value = longest,
                         .sessions = kSessions,
                         .parameters = setup.parameters};
  add_missing(system.small, config.parameters);
  system.check(config);
  return config;
}

}  // namespace

std::span<const CrashSchedule> objects_schedules() { return kSchedules; }

CrashHistory objects_crash_history(const objects::System& system, const CrashSetup& setup,
                                   const CrashSchedule& schedule) {
  const ObjectsPlan plan =
      schedule.name == kSchedules[1].name ? pools_plan() : writers_plan(setup.seed);
  return [&system, plan, config = small_shard(system, setup, plan)] {
    return std::make_unique<ObjectsCrashScenario>(system, config, plan);
  };
}

std::unique_ptr<CrashScenario> objects_generated_scenario(const objects::System& system,
                                                          const CrashSetup& setup, pmem::Tape& tape,
                                                          std::uint32_t failures) {
  ObjectsPlan plan = generated_objects_plan(tape, failures);
  objects::Config config = small_shard(system, setup, plan);
  return std::make_unique<ObjectsCrashScenario>(system, std::move(config), std::move(plan));
}

}  // namespace perdura::services
