#include "services/kv/crash_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "platform/base/error.h"
#include "platform/base/limits.h"
#include "platform/runtime/sync.h"
#include "services/boundaries.h"
#include "services/kv/crash_plan.h"
#include "services/kv/crash_state.h"
#include "services/kv/crash_store.h"
#include "services/kv/crash_verdict.h"
#include "services/kv/history/checker.h"
#include "services/kv/partitioned.h"
#include "services/kv/recorder.h"
#include "services/kv/small_store.h"
#include "services/kv/value.h"
#include "services/late_thread.h"

namespace perdura::services {

namespace {

using history::Kind;

constexpr NodeId kServer = 0;
constexpr Picoseconds kLook = Microseconds(1);  // pause between two checks of a condition
constexpr Bytes kShortValue = 64;
constexpr std::uint64_t kFewKeys = 4;
constexpr Picoseconds kMostFilling = std::chrono::milliseconds(5);

// The second schedule exists because two equally fast writers never show what a reader sees of a
// write that is in flight for a long time.
constexpr CrashSchedule kSchedules[] = {
    {"equal-writers", "both clients put, update, delete and get"},
    {"slow-writer", "one writes, and each of its operations is late; the other one only gets"},
};

bool works(const KvClientPlan& plan) { return !plan.steps.empty() || plan.watches; }

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
  // `generated`: the run is ended as soon as a problem is noted.
  KvCrashScenario(const kv::KvSystem& system, CrashStore store, KvCrashPlan plan,
                  bool generated = false)
      : system_(system),
        config_(std::move(store.config)),
        filling_(store.filling),
        plan_(std::move(plan)),
        lengths_(system, plan_),
        versions_(plan_.clients.size() + 1),
        connected_(plan_.clients.size()),
        partitions_(system.spans_servers ? 1 : plan_.servers),
        generated_(generated),
        state_(system, [this] { changed(); }),
        happened_(system) {}

  NodeId servers() const override { return config_.servers * partitions_; }
  std::uint32_t clients() const override {
    return static_cast<std::uint32_t>(plan_.clients.size());
  }
  std::uint32_t workers() const override { return config_.workers; }
  std::uint64_t planned_calls(std::size_t failures) const override {
    std::uint64_t calls = 0;
    for (const std::vector<KvClientPlan>& epochs : plan_.clients) {
      if (failures < epochs.size()) calls += epochs[failures].steps.size();
    }
    return calls;
  }
  Task<> serve(Thread& thread) override;
  Task<> use(Thread& thread, std::uint32_t number) override;
  Task<> inspect(Thread& thread) override;
  Verdict judge(std::span<const ServerFailure> failures, const ToJudge& judged) const override;
  std::map<std::string, std::uint64_t, std::less<>> events() const override {
    auto counts = happened_.counts();
    const history::History all = history();
    counts.emplace("early reads", early_reads(all));
    if (generated_) boundaries_met(all).add_to(counts);
    return counts;
  }
  std::span<const Event> expected_events() const override { return system_.events; }
  bool prepares() const override { return !filling_.empty(); }
  std::vector<CrashCall> calls() const override;
  void describe(SystemState& state) const override { state_.describe(state); }
  std::uint64_t early_observations() const override { return state_.early_reads(); }
  std::uint64_t steps_begun() const override { return state_.steps_begun(); }
  bool waits_for_operation() const override { return state_.operation_under_way(); }

 protected:
  void snapshot_observations() override {
    kept_logs_ = logs_.size();
    kept_versions_ = versions_;
  }
  void restore_observations() override {
    while (logs_.size() > kept_logs_) logs_.pop_back();
    versions_ = kept_versions_;
  }
  std::string observations_since_snapshot() const override;

 private:
  // Registers a partition for as long as further workers may join it.
  class Shared {
   public:
    Shared(KvCrashScenario& scenario, NodeId node, kv::KvPartition& partition)
        : shared_(scenario.shared_), node_(node) {
      shared_[node] = &partition;
    }
    ~Shared() { shared_.erase(node_); }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;

   private:
    std::map<NodeId, kv::KvPartition*>& shared_;
    NodeId node_;
  };

  std::uint32_t inspector() const { return clients(); }  // its client number in the history

  Task<> serve_also(Thread& thread);
  // A client's session with one worker of each server.
  Task<std::unique_ptr<kv::KvSession>> connect(Thread& thread, std::uint32_t number);
  Task<std::unique_ptr<kv::KvSession>> connect_after_others(Thread& thread);
  // The client that fills the store: the first that does anything.
  std::uint32_t filler() const {
    const auto first =
        std::find_if(plan_.clients.begin(), plan_.clients.end(),
                     [](const std::vector<KvClientPlan>& epochs) { return works(epochs.front()); });
    return static_cast<std::uint32_t>(first - plan_.clients.begin());
  }
  Task<> fill(kv::KvSession& session);
  Task<> fill_one(kv::KvSession& session, std::uint64_t key, std::uint64_t& left, WaitList& filled);
  Task<> change_at_once(kv::KvSession& session, const KvClientPlan& plan, std::uint32_t number);
  Task<> change_one(kv::KvSession& session, KvStep step, std::uint32_t number, std::uint64_t& left,
                    WaitList& changed);
  Task<> change(kv::KvSession& session, const KvClientPlan& plan, std::uint32_t number);
  Task<> watch(kv::KvSession& session, const KvClientPlan& plan, std::uint32_t number);
  Task<> read(kv::KvSession& session);
  Task<bool> step(kv::KvSession& session, KvStep step, std::uint32_t number);
  history::History history() const;  // without the failures
  BoundariesMet boundaries_met(const history::History& all) const;
  history::History without_filling(const history::History& all) const;
  history::History of_partition(const history::History& all, NodeId server) const;

  const kv::KvSystem& system_;
  kv::KvConfig config_;
  std::span<const std::uint64_t> filling_;
  KvCrashPlan plan_;
  CrashLengths lengths_;
  std::deque<kv::OperationLog> logs_;     // one for each connection
  std::vector<std::uint64_t> versions_;   // number of puts so far, by client
  std::vector<std::uint32_t> connected_;  // how often each client has connected
  std::uint32_t partitions_;
  bool generated_;
  KvCrashState state_;
  std::map<NodeId, kv::KvPartition*> shared_;
  std::size_t kept_logs_ = 0;
  std::vector<std::uint64_t> kept_versions_;
  bool filled_ = false;
  StoreEvents happened_;
};

history::History KvCrashScenario::history() const {
  history::History all;
  for (const kv::OperationLog& log : logs_) all.add(log.operations());
  return all;
}

// Notes the lengths of the values that clients have put.
BoundariesMet KvCrashScenario::boundaries_met(const history::History& all) const {
  BoundariesMet met("values", system_.fit_value(~Bytes{0}));
  for (const history::Operation& operation : all.operations()) {
    const bool put = operation.kind == Kind::put && operation.outcome == history::Outcome::ok;
    if (put) met.note(lengths_.of(operation.version));
  }
  return met;
}

std::string KvCrashScenario::observations_since_snapshot() const {
  std::string found;
  const auto add = [&found](std::uint64_t number) {
    found.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  for (std::size_t log = kept_logs_; log < logs_.size(); ++log) {
    for (const history::Operation& operation : logs_[log].operations()) {
      add(operation.key);
      add(operation.version);
      add(static_cast<std::uint64_t>(operation.kind) << 8 |
          static_cast<std::uint64_t>(operation.outcome));
    }
  }
  return found;
}

// The operations on the keys of this server.
history::History KvCrashScenario::of_partition(const history::History& all, NodeId server) const {
  if (partitions_ == 1) return all;
  history::History its;
  for (const history::Operation& operation : all.operations()) {
    const CrashKey key = crash_key(operation.key, config_.key_size);
    if (kv::partition_of(key, partitions_) == server) its.add(operation);
  }
  return its;
}

// A problem is reported together with the whole history, except for operations on the keys that the
// store was filled with.
history::History KvCrashScenario::without_filling(const history::History& all) const {
  history::History rest;
  for (const history::Operation& operation : all.operations()) {
    const bool of_filling =
        std::find(filling_.begin(), filling_.end(), operation.key) != filling_.end();
    if (!of_filling || operation.outcome != history::Outcome::ok) rest.add(operation);
  }
  return rest;
}

// Each server has keys of its own, unless the system spans servers, so each is judged alone: data
// that has survived the failure of another server may still be lost.
Verdict KvCrashScenario::judge(std::span<const ServerFailure> failures,
                               const ToJudge& judged) const {
  const history::History all = history();
  if (!problem().empty() && !failures.empty()) {
    return judge_crash(without_filling(all), times_of(failures), inspector(), problem(), judged);
  }
  Verdict verdict;
  if (!problem().empty()) {
    verdict.break_all({problem()});
    return verdict;
  }
  for (NodeId server = 0; server < partitions_; ++server) {
    std::vector<Time> of_server;
    for (const ServerFailure& failure : failures) {
      const bool is_its = partitions_ == 1 || failure.alone.value_or(server) == server;
      if (is_its) of_server.push_back(failure.when);
    }
    const history::History its = of_partition(all, server);
    if (of_server.empty()) {
      const history::CheckResult result = history::check(its);
      Verdict one;
      if (!result.accepted()) {
        one.break_all({.why = history::describe(result), .undecided = result.violations.empty()});
      }
      verdict.add(one);
    } else {
      verdict.add(judge_crash(its, of_server, inspector(), "", judged));
    }
  }
  return verdict;
}

Task<> KvCrashScenario::serve(Thread& thread) {
  if (thread.endpoint.address().port > 0) co_return co_await serve_also(thread);
  const kv::KvConfig config = kv::partition_config(config_, partitions_);
  const std::unique_ptr<kv::KvPartition> partition = system_.open(thread, "pool", config);
  const StoreEvents::Opened counted(happened_, *partition);
  const KvCrashState::Opened open(state_, *partition);
  if (const std::string problem = partition->audit(); !problem.empty()) {
    note_problem(fmt::format("the opened store contradicts itself: {}", problem));
  }
  note_serving(thread);
  changed();
  // A simulated thread runs ahead of the others, which would otherwise join a store that is not
  // open yet.
  if (workers() > 1) co_await yield();
  const Shared shared(*this, thread.endpoint.address().node, *partition);
  std::string broken;
  try {
    co_await partition->serve();
    co_return;
  } catch (const std::exception& error) {
    rethrow_refused_memory(error);
    if (!generated_) throw;
    broken = error.what();
  }
  // Tasks of the partition may still use it, so it stays until the run is ended.
  note_problem(fmt::format("the server fails: {}", broken));
  changed();
  for (;;) co_await sleep_for(std::chrono::seconds(1));
}

// The partition is opened before its first worker serves; a restart ends all of a node's threads.
Task<> KvCrashScenario::serve_also(Thread& thread) {
  const NodeId node = thread.endpoint.address().node;
  while (!shared_.contains(node)) co_await sleep_for(kLook);
  co_await shared_.at(node)->serve_also(thread);
}

Task<std::unique_ptr<kv::KvSession>> KvCrashScenario::connect(Thread& thread,
                                                              std::uint32_t number) {
  const auto worker = static_cast<fabric::Port>(number % config_.workers);
  const kv::KvConfig config = kv::partition_config(config_, partitions_);
  if (partitions_ == 1) co_return co_await system_.connect(thread, {kServer, worker}, config);
  std::vector<fabric::Address> servers;
  for (NodeId node = kServer; node < partitions_; ++node) servers.push_back({node, worker});
  co_return co_await kv::PartitionedSession::connect(system_, thread, servers, config);
}

// A store whose sessions are all in use refuses further clients until it has learned that earlier
// ones are gone: those that have died, and those that had died before it answered them.
Task<std::unique_ptr<kv::KvSession>> KvCrashScenario::connect_after_others(Thread& thread) {
  constexpr int kAttempts = 100;  // more than a server needs to learn of all ends
  for (int attempt = 1;; ++attempt) {
    try {
      co_return co_await connect(thread, 0);
    } catch (const PlatformError&) {
      if (attempt == kAttempts) throw;
    }
    co_await sleep_for(kLook);
  }
}

Task<> KvCrashScenario::use(Thread& thread, std::uint32_t number) {
  const std::uint32_t epoch = connected_[number]++;
  const KvClientPlan& plan = plan_.clients[number].at(epoch);
  if (!works(plan)) co_return;
  LateThread late(thread, plan.late);
  const std::unique_ptr<kv::KvSession> session = co_await connect(late.thread(), number);
  CrashFormat format(lengths_);
  kv::RecordedSession recorded(*session, number, format, logs_.emplace_back());
  if (prepares() && epoch == 0) {
    if (number == filler()) co_await fill(recorded);
    // With a time limit, since the client that fills the store may have died, or found no server.
    const Time late_enough = thread.executor.now() + kMostFilling;
    while (!filled_ && thread.executor.now() < late_enough) co_await sleep_for(Microseconds(1));
  }
  ObservedSession observed(recorded, state_, format, false);
  if (plan.watches) {
    co_await watch(observed, plan, number);
  } else {
    co_await change(observed, plan, number);
  }
}

Task<> KvCrashScenario::inspect(Thread& thread) {
  const std::unique_ptr<kv::KvSession> session = co_await connect_after_others(thread);
  CrashFormat format(lengths_);
  kv::RecordedSession recorded(*session, inspector(), format, logs_.emplace_back());
  ObservedSession observed(recorded, state_, format, true);
  co_await read(observed);
}

std::vector<CrashCall> KvCrashScenario::calls() const {
  std::vector<CrashCall> calls;
  for (const kv::OperationLog& log : logs_) {
    for (const history::Operation& operation : log.operations()) {
      const bool put = operation.kind == Kind::put;
      const bool ok = operation.outcome == history::Outcome::ok;
      CrashCall& call = calls.emplace_back();
      call.client = operation.client;
      call.object = operation.key;
      call.start = operation.start;
      call.changes = operation.kind != Kind::get;
      call.what =
          fmt::format("{} of {}key {}", to_string(operation.kind),
                      put ? fmt::format("version {} of ", operation.version) : "", operation.key);
      if (operation.outcome != history::Outcome::unknown) {
        call.end = operation.end;
        call.told = !ok            ? std::string(to_string(operation.outcome))
                    : call.changes ? "done"
                                   : fmt::format("version {}", operation.version);
      }
      if (!put && (!ok || call.changes)) continue;
      std::vector<std::byte> value(lengths_.of(operation.version));
      kv::fill_value(value, operation.key, operation.version);
      call.values.push_back({operation.version, std::move(value)});
    }
  }
  return calls;
}

// --- the clients' operations ---------------------------------------------------------------------

// Puts all keys of the filling, all at once.
Task<> KvCrashScenario::fill(kv::KvSession& session) {
  WaitList filled;
  std::uint64_t left = filling_.size();
  for (const std::uint64_t key : filling_) {
    Executor::current().spawn(fill_one(session, key, left, filled));
  }
  while (left > 0) co_await wait(filled);
  filled_ = true;
  note_prepared();
}

Task<> KvCrashScenario::fill_one(kv::KvSession& session, std::uint64_t key, std::uint64_t& left,
                                 WaitList& filled) {
  const KvStep put{Kind::put, key};
  co_await step(session, put, 0);
  if (--left == 0) filled.wake_all();
}

Task<> KvCrashScenario::change(kv::KvSession& session, const KvClientPlan& plan,
                               std::uint32_t number) {
  if (plan.at_once) co_return co_await change_at_once(session, plan, number);
  for (const KvStep& next : plan.steps) {
    if (!co_await step(session, next, number)) co_return;
    if (plan.pause > Picoseconds{}) co_await sleep_for(plan.pause);
  }
}

Task<> KvCrashScenario::change_at_once(kv::KvSession& session, const KvClientPlan& plan,
                                       std::uint32_t number) {
  WaitList changed;
  std::uint64_t left = plan.steps.size();
  for (const KvStep& step : plan.steps) {
    Executor::current().spawn(change_one(session, step, number, left, changed));
  }
  while (left > 0) co_await wait(changed);
}

Task<> KvCrashScenario::change_one(kv::KvSession& session, KvStep step, std::uint32_t number,
                                   std::uint64_t& left, WaitList& changed) {
  co_await this->step(session, step, number);
  if (--left == 0) changed.wake_all();
}

// Gets the key for as long as another client, the slow writer, is at work.
Task<> KvCrashScenario::watch(kv::KvSession& session, const KvClientPlan& plan,
                              std::uint32_t number) {
  const KvStep get{Kind::get, 0};
  for (bool answered = true; answered && clients_at_work() > 1;) {
    answered = co_await step(session, get, number);
    co_await sleep_for(plan.pause);
  }
}

// Waits until the other clients have noticed the failure, then reads all keys, reads those of the
// history again, writes them, and reads all keys once more.
Task<> KvCrashScenario::read(kv::KvSession& session) {
  while (clients_at_work() > 0) co_await sleep_for(Microseconds(20));
  std::vector<std::uint64_t> keys(plan_.keys);
  std::iota(keys.begin(), keys.end(), std::uint64_t{0});
  std::vector<std::uint64_t> all = keys;
  all.insert(all.end(), filling_.begin(), filling_.end());
  const std::array<std::pair<Kind, const std::vector<std::uint64_t>*>, 4> rounds{
      {{Kind::get, &all}, {Kind::get, &keys}, {Kind::put, &keys}, {Kind::get, &all}}};
  for (const auto& [kind, of_round] : rounds) {
    for (const std::uint64_t key : *of_round) {
      const KvStep next{kind, key};
      const bool answered = co_await step(session, next, inspector());
      if (answered) continue;
      note_problem("the connection to the recovered store breaks");
      co_return;
    }
  }
}

// Returns false if the server is gone.
Task<bool> KvCrashScenario::step(kv::KvSession& session, KvStep step, std::uint32_t number) {
  using kv::Error;
  const CrashKey key = crash_key(step.key, config_.key_size);
  std::vector<std::byte> value(lengths_.longest());
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
  const std::uint64_t version = versions_[number]++ * versions_.size() + number + 1;
  value.resize(lengths_.of(version));
  kv::fill_value(value, step.key, version);
  const auto stored = co_await session.put(key, value);
  // The smallest stores have room for all keys only if those are few and the values are short.
  const bool may_be_full =
      !stored && stored.error() == Error::out_of_space &&
      (lengths_.longest() > kShortValue || plan_.keys > kFewKeys || plan_.crowded);
  if (may_be_full) co_return true;
  if (!stored && stored.error() != Error::disconnected) {
    note_problem(fmt::format("a put fails: {}", to_string(stored.error())));
  }
  co_return stored || stored.error() != Error::disconnected;
}

}  // namespace

std::span<const CrashSchedule> kv_schedules() { return kSchedules; }

CrashHistory kv_crash_history(const kv::KvSystem& system, const CrashSetup& setup,
                              const CrashSchedule& schedule) {
  const bool slow = schedule.name == kSchedules[1].name;
  const KvCrashPlan plan = slow ? slow_writer_plan() : equal_writers_plan(setup.seed);
  CrashStore store = small_crash_store(system, setup, plan, 0);
  if (slow) store.filling = {};  // it is about what a reader sees, not about growth
  return [&system, plan, store] { return std::make_unique<KvCrashScenario>(system, store, plan); };
}

std::unique_ptr<CrashScenario> kv_generated_scenario(const kv::KvSystem& system,
                                                     const CrashSetup& setup, pmem::Tape& tape,
                                                     std::uint32_t failures) {
  KvCrashPlan plan = generated_plan(tape, failures);
  const std::size_t stores = std::max<std::size_t>(system.small_stores.size(), 1);
  const std::size_t number = tape.stream("store").choose(stores);
  pmem::Choices& filling = tape.stream("filling");
  const bool filled = filling.choose(4) == 3;
  if (filled) plan.key_size = KvCrashPlan{}.key_size;  // that of the keys in the filling
  CrashStore store = small_crash_store(system, setup, plan, number);
  if (!filled) store.filling = {};
  const bool gets_filling = filling.choose(2) == 1;
  if (gets_filling && !store.filling.empty()) {
    get_filling(plan, store.filling, filling.choose(store.filling.size()));
  }
  return std::make_unique<KvCrashScenario>(system, std::move(store), std::move(plan), true);
}

}  // namespace perdura::services
