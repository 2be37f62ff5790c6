#include "bench/crash/crash_scenario.h"

#include <fmt/format.h>

#include <cstring>

#include "harness/workload/value.h"
#include "platform/base/error.h"
#include "platform/faults/faulty_thread.h"

namespace perdura::bench {

namespace {

using history::Kind;

constexpr NodeId kServer = 0;
constexpr std::uint32_t kSlowWriter = 0;
constexpr Bytes kKeySize = 16;
constexpr Bytes kValueSize = 64;    // or the longest that the system takes
constexpr std::size_t kSteps = 16;  // of a client, besides the puts that create the keys
// How late each operation of a slow writer is: enough for several gets between any two of them.
constexpr Picoseconds kLate = Microseconds(25);
constexpr Picoseconds kBetweenGets = Microseconds(6);
// Of virtual time: a store that has not served the reader by then never will.
constexpr Picoseconds kPatience = std::chrono::seconds(2);

using Key = std::array<std::byte, kKeySize>;

Key key_of(std::uint64_t number) {
  Key key{};
  std::memcpy(key.data(), &number, sizeof number);
  return key;
}

// Notes which alternatives were taken.
class NotingChoices final : public pmem::Choices {
 public:
  explicit NotingChoices(pmem::Choices& choices) : choices_(choices) {}
  std::size_t choose(std::size_t n) override {
    const std::size_t taken = choices_.choose(n);
    digest = (digest ^ (n << 32 | taken)) * 0x9E3779B97F4A7C15;
    digest ^= digest >> 29;
    return taken;
  }
  std::uint64_t digest = 0;

 private:
  pmem::Choices& choices_;
};

}  // namespace

systems::KvConfig small_store(const systems::KvSystem& system, const CrashOptions& options) {
  const Bytes value_size = system.fit_value(kValueSize);
  systems::KvConfig config{.key_size = kKeySize,
                           .value_size = value_size,
                           .max_value_size = value_size,
                           .records = kCrashKeys,
                           .writes = 8 * kSteps,
                           .sessions = 8,
                           .parameters = options.parameters};
  if (options.correct) {
    config.put_method = persistence::choose(
        {{options.model, pmem::Medium::dram}, {options.model, pmem::Medium::pm}}, system.put, {});
  }
  for (const auto& [name, value] : system.small_store) {
    config.parameters.emplace(name, value);  // unless it was given
  }
  return config;
}

std::uint64_t CrashScenario::Format::key_number(systems::Key key) {
  std::uint64_t number = 0;
  std::memcpy(&number, key.data(), sizeof number);
  return number;
}

std::optional<std::uint64_t> CrashScenario::Format::version(systems::Key key,
                                                            systems::Value value) {
  if (value.size() != value_size_) return std::nullopt;
  return workload::check_value(value, key_number(key));
}

// Counts a client for as long as it lives, however it ends.
class CrashScenario::Present {
 public:
  explicit Present(std::uint32_t& clients) : clients_(clients) {}
  ~Present() { --clients_; }
  Present(const Present&) = delete;
  Present& operator=(const Present&) = delete;

 private:
  std::uint32_t& clients_;
};

CrashScenario::CrashScenario(const systems::KvSystem& system, systems::KvConfig store,
                             const sim::Profile& profile, const CrashOptions& options,
                             Schedule schedule)
    : schedule_(schedule),
      system_(system),
      seed_(options.seed),
      config_(std::move(store)),
      platform_(profile, kCrashClients + 2) {
  platform_.track_durability(options.model);
}

// --- the run -------------------------------------------------------------------------------------

void CrashScenario::run(sim::Failure& failure, const std::set<std::uint64_t>& known) {
  start_server();
  for (std::uint32_t number = 0; number < kCrashClients; ++number) start_client(number, false);
  failure.watch(platform_, [this, &known](pmem::Choices& choices) {
    failed_at_ = platform_.engine().now();
    NotingChoices noting(choices);
    noting.digest = platform_.engine().fired() ^
                    static_cast<std::uint64_t>(failed_at_->time_since_epoch().count()) << 20;
    platform_.fail_power(kServer, noting);
    image_ = noting.digest;
    if (known.contains(image_)) {
      image_was_known_ = true;
      for (NodeId node = 1; node < platform_.node_count(); ++node) platform_.kill(node);
      return;
    }
    start_server();
    start_client(kCrashReader, true);
    platform_.at(*failed_at_ + kPatience, [this] {
      if (problem_.empty()) problem_ = "the store does not answer any more";
      for (NodeId node = 1; node < platform_.node_count(); ++node) platform_.kill(node);
    });
  });
  try {
    platform_.run();
  } catch (const std::exception& error) {
    if (!failed_at_) throw;
    problem_ = error.what();
  }
  if (failed_at_) return;
  for (const std::string& problem : client_problems_) {
    if (problem_.empty()) problem_ = problem;
  }
}

history::History CrashScenario::history() const {
  history::History all;
  for (const history::OperationLog& log : logs_) all.add(log.operations());
  return all;
}

void CrashScenario::start_server() {
  platform_.start_service(kServer, 0, CompletionMode::polling,
                          [this](Thread& thread) { return serve(thread); });
}

void CrashScenario::start_client(std::uint32_t number, bool reader) {
  ++clients_;
  const NodeId node = number + 1;
  platform_.start(node, static_cast<fabric::Port>(node), CompletionMode::polling,
                  [this, number, reader](Thread& thread) { return use(thread, number, reader); });
}

Task<> CrashScenario::serve(Thread& thread) {
  std::unique_ptr<systems::KvPartition> partition;
  try {
    partition = system_.open(thread, "pool", config_);
  } catch (const std::exception& error) {
    if (!failed_at_) throw;
    problem_ = fmt::format("recovery fails: {}", error.what());
  }
  if (partition == nullptr) co_return;
  struct Counted {
    const systems::KvPartition& partition;
    std::uint64_t& cleanings;
    ~Counted() { cleanings = partition.space().cleanings; }
  } counted{*partition, cleanings_};
  co_await partition->serve();
}

Task<> CrashScenario::use(Thread& thread, std::uint32_t number, bool reader) {
  const Present present(clients_);
  const bool slow = schedule_ == Schedule::slow_writer && number == kSlowWriter;
  struct Writing {
    bool& flag;
    bool ends;
    ~Writing() { flag = flag && !ends; }
  } writing{writing_, slow};
  std::optional<faults::FaultyThread> late;
  if (slow) late.emplace(thread, faults::FaultPlan{.slow = {kLate, kLate}});
  std::unique_ptr<systems::KvSession> session;
  std::string problem;
  try {
    session = co_await system_.connect(slow ? late->thread() : thread, {kServer, 0}, config_);
  } catch (const PlatformError& error) {
    problem = error.what();
  }
  if (session == nullptr) {
    std::string& of_whom = reader ? problem_ : client_problems_[number];
    if (of_whom.empty()) of_whom = problem;
    co_return;
  }
  Format format(config_.value_size);
  history::RecordedSession recorded(*session, number, format, logs_[number]);
  if (reader) {
    co_await read(recorded);
  } else if (schedule_ == Schedule::slow_writer && !slow) {
    co_await watch(recorded, number);
  } else {
    co_await change(recorded, number);
  }
}

// --- what clients do -----------------------------------------------------------------------------

// Alone, a writer does what can be seen early: a creation, an update, a deletion, and a creation
// where a deleted key was. With another one, first every key is created, so that both clients have
// the same ones; then anything.
std::vector<CrashScenario::Step> CrashScenario::plan(std::uint32_t client) const {
  if (schedule_ == Schedule::slow_writer) {
    return {{Kind::put, 0}, {Kind::put, 0}, {Kind::erase, 0}, {Kind::put, 0}};
  }
  std::vector<Step> steps;
  for (std::uint64_t key = client; key < kCrashKeys; key += kCrashClients) {
    steps.push_back({Kind::put, key});
  }
  pmem::RandomChoices random(seed_ * kCrashClients + client);
  constexpr Kind kKinds[] = {Kind::put, Kind::put, Kind::put, Kind::put, Kind::get, Kind::erase};
  for (std::size_t i = 0; i < kSteps; ++i) {
    const Kind kind = kKinds[random.choose(std::size(kKinds))];
    steps.push_back({kind, random.choose(kCrashKeys)});
  }
  return steps;
}

Task<> CrashScenario::change(systems::KvSession& session, std::uint32_t number) {
  const std::vector<Step> steps = plan(number);
  for (const Step& next : steps) {
    if (!co_await step(session, next, number)) co_return;
  }
}

// Gets for as long as the slow writer writes.
Task<> CrashScenario::watch(systems::KvSession& session, std::uint32_t number) {
  const Step get{Kind::get, 0};
  for (bool answered = true; answered && writing_;) {
    answered = co_await step(session, get, number);
    co_await sleep_for(kBetweenGets);
  }
}

// When the others have noticed the failure: everything is read twice, written, and read again.
Task<> CrashScenario::read(systems::KvSession& session) {
  while (clients_ > 1) co_await sleep_for(Microseconds(20));
  for (const Kind kind : {Kind::get, Kind::get, Kind::put, Kind::get}) {
    for (std::uint64_t key = 0; key < kCrashKeys; ++key) {
      const bool answered = co_await step(session, {kind, key}, kCrashReader);
      if (answered) continue;
      problem_ = "the connection to the recovered store breaks";
      co_return;
    }
  }
}

// False if the server is gone.
Task<bool> CrashScenario::step(systems::KvSession& session, Step step, std::uint32_t number) {
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
  const std::uint64_t version = versions_[number]++ * (kCrashClients + 1) + number + 1;
  workload::fill_value(value, step.key, version);
  const auto stored = co_await session.put(key, value);
  if (!stored && stored.error() != Error::disconnected && problem_.empty()) {
    problem_ = fmt::format("a put fails: {}", to_string(stored.error()));
  }
  co_return stored || stored.error() != Error::disconnected;
}

}  // namespace perdura::bench
