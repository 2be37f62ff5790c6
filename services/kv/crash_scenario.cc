#include "services/kv/crash_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "platform/base/error.h"
#include "platform/faults/faulty_thread.h"
#include "services/kv/crash_verdict.h"
#include "services/kv/history/checker.h"
#include "services/kv/recorder.h"
#include "services/kv/value.h"

namespace perdura::services {

namespace {

using history::Kind;

constexpr NodeId kServer = 0;
constexpr std::uint64_t kKeys = 4;
constexpr std::uint32_t kClients = 2;
constexpr std::uint32_t kInspector = kClients;  // its client number in the history
constexpr std::uint32_t kSlowWriter = 0;
constexpr Bytes kKeySize = 16;
// Or the longest value that the system accepts, if that is shorter.
constexpr Bytes kValueSize = 64;
constexpr std::uint32_t kSpannedServers = 2;
constexpr std::size_t kSteps = 16;  // operations of a client, besides the puts that create the keys
// The delay of each operation of a slow writer. It leaves time for several gets in between.
constexpr Picoseconds kLate = Microseconds(25);
constexpr Picoseconds kBetweenGets = Microseconds(6);

// The second schedule exists because two equally fast writers never show what a reader sees of a
// write that is in flight for a long time.
constexpr CrashSchedule kSchedules[] = {
    {"equal-writers", "both clients put, update, delete and get"},
    {"slow-writer", "one writes, and each of its operations is late; the other one only gets"},
};

using Key = std::array<std::byte, kKeySize>;

Key key_of(std::uint64_t number) {
  Key key{};
  std::memcpy(key.data(), &number, sizeof number);
  return key;
}

// How the recorder of the history interprets keys and values.
class Format final : public history::Format {
 public:
  explicit Format(Bytes value_size) : value_size_(value_size) {}
  std::uint64_t key_number(systems::Key key) override {
    std::uint64_t number = 0;
    std::memcpy(&number, key.data(), sizeof number);
    return number;
  }
  std::optional<std::uint64_t> version(systems::Key key, systems::Value value) override {
    if (value.size() != value_size_) return std::nullopt;
    return workload::check_value(value, key_number(key));
  }

 private:
  Bytes value_size_;
};

// The smallest store that the system can have, so that logs wrap around and are cleaned during the
// history.
systems::KvConfig small_store(const systems::KvSystem& system, const CrashSetup& setup) {
  const Bytes value_size = system.fit_value(kValueSize);
  systems::KvConfig config{.key_size = kKeySize,
                           .value_size = value_size,
                           .max_value_size = value_size,
                           .records = kKeys,
                           .writes = 8 * kSteps,
                           .sessions = 8,
                           .parameters = setup.parameters};
  if (system.spans_servers) config.servers = kSpannedServers;
  if (setup.correct) {
    config.put_method = persistence::choose(
        {{setup.model, pmem::Medium::dram}, {setup.model, pmem::Medium::pm}}, *system.put, {});
  }
  for (const services::Setting& setting : system.small_store) {
    config.parameters.emplace(setting.name, setting.value);  // unless the setup sets it
  }
  return config;
}

// The number of gets that returned a version before its put had been acknowledged.
std::uint64_t early_reads(const history::History& history) {
  const auto& all = history.operations();
  return static_cast<std::uint64_t>(
      std::count_if(all.begin(), all.end(), [&](const history::Operation& get) {
        return get.kind == history::Kind::get && get.outcome == history::Outcome::ok &&
               std::any_of(all.begin(), all.end(), [&](const history::Operation& put) {
                 return put.kind == history::Kind::put && put.key == get.key &&
                        put.version == get.version && put.end > get.end;
               });
      }));
}

class KvCrashScenario final : public CrashScenario {
 public:
  KvCrashScenario(const systems::KvSystem& system, systems::KvConfig config, std::uint64_t seed,
                  bool slow_writer)
      : system_(system), config_(std::move(config)), seed_(seed), slow_writer_(slow_writer) {}

  NodeId servers() const override { return config_.servers; }
  std::uint32_t clients() const override { return kClients; }
  Task<> serve(Thread& thread) override;
  Task<> use(Thread& thread, std::uint32_t number) override;
  Task<> inspect(Thread& thread) override;
  CrashVerdict judge(std::optional<Time> failed_at, const CrashLevels& levels) const override;
  std::map<std::string, std::uint64_t, std::less<>> events() const override {
    return {{"cleanings", cleanings_}, {"early reads", early_reads(history())}};
  }

 private:
  struct Step {
    Kind kind;
    std::uint64_t key;
  };

  Task<> change(systems::KvSession& session, std::uint32_t number);
  Task<> watch(systems::KvSession& session, std::uint32_t number);
  Task<> read(systems::KvSession& session);
  Task<bool> step(systems::KvSession& session, Step step, std::uint32_t number);
  std::vector<Step> plan(std::uint32_t client) const;
  history::History history() const;  // without the failure

  const systems::KvSystem& system_;
  systems::KvConfig config_;
  std::uint64_t seed_;
  bool slow_writer_;
  std::array<history::OperationLog, kClients + 1> logs_;
  std::array<std::uint64_t, kClients + 1> versions_{};  // number of puts so far
  bool writing_ = true;                                 // whether the slow writer is still writing
  std::uint64_t cleanings_ = 0;
};

history::History KvCrashScenario::history() const {
  history::History all;
  for (const history::OperationLog& log : logs_) all.add(log.operations());
  return all;
}

CrashVerdict KvCrashScenario::judge(std::optional<Time> failed_at,
                                    const CrashLevels& levels) const {
  if (failed_at) return judge_crash(history(), *failed_at, kInspector, problem(), levels);
  CrashVerdict verdict;
  verdict.durable = problem();
  if (!verdict.durable.empty()) return verdict;
  const history::CheckResult result = history::check(history());
  if (!result.accepted()) verdict.durable = describe(result);
  return verdict;
}

Task<> KvCrashScenario::serve(Thread& thread) {
  const std::unique_ptr<systems::KvPartition> partition = system_.open(thread, "pool", config_);
  struct Counted {
    const systems::KvPartition& partition;
    std::uint64_t& cleanings;
    ~Counted() { cleanings = partition.space().cleanings; }
  } counted{*partition, cleanings_};
  co_await partition->serve();
}

Task<> KvCrashScenario::use(Thread& thread, std::uint32_t number) {
  const bool slow = slow_writer_ && number == kSlowWriter;
  struct Writing {
    bool& flag;
    bool ends;
    ~Writing() { flag = flag && !ends; }
  } writing{writing_, slow};
  std::optional<faults::FaultyThread> late;
  if (slow) late.emplace(thread, faults::FaultPlan{.slow = {kLate, kLate}});
  const std::unique_ptr<systems::KvSession> session =
      co_await system_.connect(slow ? late->thread() : thread, {kServer, 0}, config_);
  Format format(config_.value_size);
  history::RecordedSession recorded(*session, number, format, logs_[number]);
  if (slow_writer_ && !slow) {
    co_await watch(recorded, number);
  } else {
    co_await change(recorded, number);
  }
}

Task<> KvCrashScenario::inspect(Thread& thread) {
  const std::unique_ptr<systems::KvSession> session =
      co_await system_.connect(thread, {kServer, 0}, config_);
  Format format(config_.value_size);
  history::RecordedSession recorded(*session, kInspector, format, logs_[kInspector]);
  co_await read(recorded);
}

// --- what clients do -----------------------------------------------------------------------------

// The operations of a client. A slow writer does what a reader may see too early: it creates,
// updates and deletes a key, and creates it again in the place of the deleted one. With two equal
// writers every key is created first, so that both use the same keys, followed by random
// operations.
std::vector<KvCrashScenario::Step> KvCrashScenario::plan(std::uint32_t client) const {
  if (slow_writer_) {
    return {{Kind::put, 0}, {Kind::put, 0}, {Kind::erase, 0}, {Kind::put, 0}};
  }
  std::vector<Step> steps;
  for (std::uint64_t key = client; key < kKeys; key += kClients) {
    steps.push_back({Kind::put, key});
  }
  pmem::RandomChoices random(seed_ * kClients + client);
  constexpr Kind kKinds[] = {Kind::put, Kind::put, Kind::put, Kind::put, Kind::get, Kind::erase};
  for (std::size_t i = 0; i < kSteps; ++i) {
    const Kind kind = kKinds[random.choose(std::size(kKinds))];
    steps.push_back({kind, random.choose(kKeys)});
  }
  return steps;
}

Task<> KvCrashScenario::change(systems::KvSession& session, std::uint32_t number) {
  const std::vector<Step> steps = plan(number);
  for (const Step& next : steps) {
    if (!co_await step(session, next, number)) co_return;
  }
}

// Gets the key as long as the slow writer is writing.
Task<> KvCrashScenario::watch(systems::KvSession& session, std::uint32_t number) {
  const Step get{Kind::get, 0};
  for (bool answered = true; answered && writing_;) {
    answered = co_await step(session, get, number);
    co_await sleep_for(kBetweenGets);
  }
}

// Waits until the other clients have noticed the failure, then reads all keys twice, writes them,
// and reads them again.
Task<> KvCrashScenario::read(systems::KvSession& session) {
  while (clients_at_work() > 0) co_await sleep_for(Microseconds(20));
  for (const Kind kind : {Kind::get, Kind::get, Kind::put, Kind::get}) {
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      const bool answered = co_await step(session, {kind, key}, kInspector);
      if (answered) continue;
      note_problem("the connection to the recovered store breaks");
      co_return;
    }
  }
}

// False if the server is gone.
Task<bool> KvCrashScenario::step(systems::KvSession& session, Step step, std::uint32_t number) {
  using systems::Error;
  const Key key = key_of(step.key);
  std::array<std::byte, kValueSize> room;
  const std::span<std::byte> value = std::span(room).first(config_.value_size);
  switch (step.kind) {
    case Kind::get: {
      const auto got = co_await session.get(key, value);
      co_return got || got.error() != Error::disconnected;
    }
    case Kind::erase: {
      const auto erased = co_await session.erase(key);
      co_return erased || erased.error() != Error::disconnected;
    }
    case Kind::put:
      break;
  }
  const std::uint64_t version = versions_[number]++ * (kClients + 1) + number + 1;
  workload::fill_value(value, step.key, version);
  const auto stored = co_await session.put(key, value);
  if (!stored && stored.error() != Error::disconnected) {
    note_problem(fmt::format("a put fails: {}", to_string(stored.error())));
  }
  co_return stored || stored.error() != Error::disconnected;
}

}  // namespace

std::span<const CrashSchedule> kv_schedules() { return kSchedules; }

CrashHistory kv_crash_history(const systems::KvSystem& system, const CrashSetup& setup,
                              const CrashSchedule& schedule) {
  return [&system, config = small_store(system, setup), seed = setup.seed,
          slow_writer = schedule.name == kSchedules[1].name] {
    return std::make_unique<KvCrashScenario>(system, config, seed, slow_writer);
  };
}

}  // namespace perdura::services
