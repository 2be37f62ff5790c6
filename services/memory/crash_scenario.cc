#include "services/memory/crash_scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "platform/base/error.h"
#include "services/history_scenario.h"
#include "services/memory/crash_boundaries.h"
#include "services/memory/crash_cells.h"
#include "services/memory/crash_order.h"
#include "services/memory/crash_plan.h"
#include "services/memory/crash_verdict.h"
#include "services/memory/specification.h"

namespace perdura::services {

namespace {

using Operation = MemorySpecification::Operation;
using State = MemorySpecification::State;

constexpr Picoseconds kLook = Microseconds(10);  // pause between two checks of a condition
constexpr Picoseconds kRead = Microseconds(3);   // pause between two reads of a copy
// Client number c stores versions between c and c + 1 times this number.
constexpr std::uint64_t kVersionsOfClient = 1000;

constexpr CrashSchedule kSchedules[] = {
    {"threads", "two threads of an application sync, and the mirror's copy is read"},
};

class MemoryCrashScenario final : public HistoryScenario<MemorySpecification> {
 public:
  MemoryCrashScenario(const MemorySystem& system, MemoryConfig config, MemoryPlan plan)
      : system_(system),
        config_(std::move(config)),
        plan_(std::move(plan)),
        workers_(system.workers(config_)),
        starts_(config_.nodes.size()),
        replicas_(config_.nodes.size()),
        followed_(config_.nodes.size()),
        versions_(config_.threads + 1),
        epochs_(config_.threads),
        order_(config_.nodes, plan_.moves),
        keeps_copies_(plan_.is_patient) {
    for (std::uint32_t thread = 0; thread < config_.threads; ++thread) {
      for (const MemoryCell& cell : plan_.layout.cells_of(thread)) cells_.push_back(cell);
    }
    specification().cells = cells_.size();
    told_.threads = config_.threads;
    told_.inspector = config_.threads;
    told_.seen.resize(config_.nodes.size());
  }

  NodeId servers() const override { return static_cast<NodeId>(config_.nodes.size()); }
  std::uint32_t clients() const override { return config_.threads; }
  NodeId node_of_client(std::uint32_t) const override { return primary(); }
  std::uint32_t workers() const override { return workers_; }
  std::uint64_t planned_calls(std::size_t failures) const override {
    std::uint64_t calls = 0;
    for (const std::vector<MemoryThreadPlan>& epochs : plan_.epochs) {
      if (failures < epochs.size()) calls += epochs[failures].syncs;
    }
    return calls;
  }

  Task<> serve(Thread& thread) override;
  Task<> use(Thread& thread, std::uint32_t number) override;
  Task<> inspect(Thread&) override;
  void note_failure(const ServerFailure& failure) override;

  // Nothing may be lost if only copies failed: applications go on meanwhile.
  Verdict judge(std::span<const ServerFailure> failures, const ToJudge& judged) const override {
    MemoryCrashHistory told = told_;
    told.specification = specification();
    told.calls = history();
    told.problem = problem();
    if (lags(told_.inspected)) {
      std::vector<Time> times = times_of(failures);
      if (promoted_at_) times.push_back(*promoted_at_);
      return judge_lagging_copy(told, times, judged);
    }
    std::vector<Time> of_primary;
    for (const ServerFailure& failure : failures) {
      if (order_.was_of_primary(failure)) of_primary.push_back(failure.when);
    }
    return judge_memory(told, of_primary, judged);
  }

  std::map<std::string, std::uint64_t, std::less<>> events() const override {
    std::map<std::string, std::uint64_t, std::less<>> events;
    for (std::size_t i = 0; i < system_.events.size(); ++i) {
      std::uint64_t& count = events[std::string(system_.events[i].name)];
      count = i < closed_.size() ? closed_[i] : 0;
      for (const auto& replica : replicas_) {
        if (replica) count += replica->events().at(i);
      }
    }
    if (!plan_.is_generated) return events;
    met_.add_to(events, system_.copies);
    return events;
  }
  std::span<const Event> expected_events() const override { return system_.events; }
  bool loses_with_processes() const override {
    return system_.info.level < GuaranteeLevel::durable_writes;
  }
  bool waits_for_operation() const override {
    return HistoryScenario::waits_for_operation() || (asked_ && !answered_);
  }

 protected:
  void explain(const Call<Operation>& call, CrashCall& shown) const override {
    const Operation& operation = call.operation;
    shown.what = MemorySpecification::what(operation);
    if (call.answered) {
      shown.told = shown.changes ? "done" : fmt::format("{}", fmt::join(operation.found, " "));
    }
    const auto add_value = [&](std::uint64_t version) {
      const auto bytes = std::as_bytes(std::span(&version, 1));
      shown.values.push_back({version, {bytes.begin(), bytes.end()}});
    };
    for (const auto& [cell, version] : operation.stored) add_value(version);
    for (const std::uint64_t version : operation.found) add_value(version);
  }
  void snapshot_observations() override {
    HistoryScenario::snapshot_observations();
    kept_starts_ = starts_;
    kept_versions_ = versions_;
    kept_followed_ = followed_;
    // The failure is still in progress, so the replicas have not been closed (Opened).
    note_lost_copies();
    kept_ = {told_.seen, told_.losses};
    if (is_unreplicated(replicas_[primary()])) kept_.losses.failed_alone = true;
  }
  void restore_observations() override {
    HistoryScenario::restore_observations();
    told_.seen = kept_.seen;
    told_.losses = kept_.losses;
    starts_ = kept_starts_;
    versions_ = kept_versions_;
    followed_ = kept_followed_;
    asked_ = answered_ = false;
    promoted_at_.reset();
  }

 private:
  static constexpr Picoseconds kForEver = std::chrono::seconds(1);

  // Keeps a replica while it is open; notes its losses and its events at the end.
  class Opened {
   public:
    Opened(MemoryCrashScenario& scenario, NodeId node, std::shared_ptr<MemoryReplica> replica)
        : scenario_(scenario), node_(node) {
      scenario.replicas_[node] = std::move(replica);
    }
    ~Opened() {
      scenario_.note_lost_copies();
      for (NodeId copy = 0; copy < scenario_.replicas_.size(); ++copy) {
        if (scenario_.replicas_[node_]->has_lost(copy)) ++scenario_.met_.given_up;
      }
      if (is_unreplicated(scenario_.replicas_[node_])) scenario_.told_.losses.failed_alone = true;
      const std::vector<std::uint64_t> events = scenario_.replicas_[node_]->events();
      scenario_.closed_.resize(events.size());
      for (std::size_t i = 0; i < events.size(); ++i) scenario_.closed_[i] += events[i];
      scenario_.followed_[node_] = scenario_.replicas_[node_]->would_follow();
      scenario_.replicas_[node_].reset();
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

   private:
    MemoryCrashScenario& scenario_;
    NodeId node_;
  };

  std::uint32_t reader_of(NodeId copy) const { return clients() + copy; }
  NodeId primary() const { return order_.primary(); }

  bool all_open() const {
    return std::all_of(order_.nodes().begin(), order_.nodes().end(),
                       [this](NodeId node) { return replicas_[node] != nullptr; });
  }
  static bool is_unreplicated(const std::shared_ptr<MemoryReplica>& replica) {
    return replica && replica->is_unreplicated();
  }
  // A node that has given up a copy may have gone on without it.
  void note_lost_copies() {
    MemoryLosses& losses = told_.losses;
    for (const auto& replica : replicas_) {
      for (NodeId copy = 0; replica && copy < replicas_.size(); ++copy) {
        if (!replica->has_lost(copy)) continue;
        losses.any_copy = true;
        if (keeps_copies_) {
          note_problem(
              fmt::format("a copy is given up, that of node {}, which has not failed", copy));
        }
      }
    }
    const auto& first = replicas_[primary()];
    for (NodeId copy = 0; first && copy < replicas_.size(); ++copy) {
      losses.one_of_several =
          losses.one_of_several || (first->has_lost(copy) && !first->is_unreplicated());
    }
  }
  // True if nobody waits until the node has what was synced.
  bool lags(NodeId node) const { return order_.place_of(node) > system_.synced_copies; }
  // True if a copy has all that was acknowledged, or, if it lags, all up to some sync point, and if
  // the others would follow it. What a node holds is not known before it has opened it: the node's
  // thread may be ahead of the simulated time, and a failure may take back what it has done.
  bool may_be_promoted(NodeId copy, Time now) const {
    if (copy == primary() || told_.losses.any_copy || promoting_) return false;
    if (!replicas_[copy] || !replicas_[copy]->is_complete()) return false;
    const std::uint64_t term = replicas_[copy]->next_term();
    for (NodeId node = 0; node < replicas_.size(); ++node) {
      if (replicas_[node] && !serves(node, now)) return false;
      if (node == copy) continue;
      // One that is away follows what it did when it went.
      const TermTest follows = replicas_[node] ? replicas_[node]->would_follow() : followed_[node];
      if (follows && !follows(term)) return false;
    }
    return true;
  }
  Task<> promote_primary();
  Task<> read_promoted(MappedMemory& memory, std::uint32_t number);

  Task<bool> sync(MappedMemory& memory, std::uint32_t client, std::uint32_t thread,
                  std::size_t turn) {
    // A thread that has worked without a pause, as to map the region, is ahead of the simulated
    // time: without this, others would see its stores too early.
    co_await yield();
    Operation operation;
    std::vector<MemoryRange> ranges;
    const std::uint64_t version = client * kVersionsOfClient + ++versions_[client];
    for (const std::size_t cell : cells_of_sync(thread, turn)) {
      operation.stored.emplace_back(cell, version);
      ranges.push_back({cells_[cell].offset, cells_[cell].length});
    }
    Calling calling(*this, operation, client);
    store_cell(memory.region(), plan_.layout.unsynced(), version);
    for (const auto& [cell, stored] : operation.stored) {
      store_cell(memory.region(), cells_[cell], stored);
    }
    const auto done = co_await memory.sync(ranges);
    note_lost_copies();
    // The same holds for a sync that waits for nobody: a failure before its end must find it
    // unanswered.
    co_await yield();
    if (!done) {
      note_problem(fmt::format("a sync ends with '{}'", to_string(done.error())));
      co_return false;
    }
    knowing_ = config_.nodes.size();
    count_boundaries(operation);
    calling.end();
    co_return true;
  }

  void count_boundaries(const Operation& synced) {
    std::vector<MemoryCell> cells;
    for (const auto& [cell, version] : synced.stored) cells.push_back(cells_[cell]);
    met_.note_sync(cells);
    if (config_.nodes.size() > 1 + system_.copies.least) ++met_.with_more_copies;
    if (told_.losses.moved) ++met_.on_promoted;
  }

  static void note_read(std::vector<ClientCall<Operation>>& calls, std::uint32_t client, Time start,
                        State found) {
    Operation operation{.kind = Operation::Kind::read, .found = std::move(found)};
    calls.push_back({{std::move(operation), start, Executor::current().now(), true}, client});
  }

  // Reads the copy of the thread's node as long as application threads are at work.
  Task<> watch(Thread& thread) {
    const NodeId copy = thread.node.id();
    std::vector<ClientCall<Operation>>& seen = told_.seen[copy];
    while (clients_at_work() == 0) co_await sleep_for(kLook);
    while (clients_at_work() > 0) {
      const std::shared_ptr<MemoryReplica> replica = replicas_[copy];
      if (!replica->is_complete()) {
        co_await sleep_for(kRead);
        continue;
      }
      const Time start = thread.executor.now();
      State found = read_cells(cells_, *replica, config_.size);
      co_await yield();  // as in sync()
      if (seen.empty() || seen.back().call.operation.found != found) {
        note_read(seen, reader_of(copy), start, std::move(found));
      }
      std::uint64_t unsynced = 0;
      replica->read(plan_.layout.unsynced().offset,
                    std::as_writable_bytes(std::span(&unsynced, 1)));
      // A copy that was given the region by a running primary, or by one that has gone on alone,
      // holds everything that had been stored by then.
      const bool was_copied = told_.losses.any_copy || told_.losses.moved ||
                              std::any_of(starts_.begin() + 1, starts_.end(),
                                          [](std::uint32_t starts) { return starts > 1; });
      if (unsynced != 0 && !was_copied) {
        note_problem(fmt::format("the copy of node {} has what was never synced", copy));
      }
      co_await sleep_for(kRead);
    }
  }

  Task<> be_promoted(Thread& thread) {
    while (!asked_) co_await sleep_for(kLook);
    const NodeId self = thread.node.id();
    if (told_.inspected != self) co_return;
    if (self != primary()) {
      // It may be incomplete by now, since a preceding node may have begun to give it the region.
      if (!may_be_promoted(self, thread.executor.now())) told_.inspected = primary();
      if (told_.inspected != self) co_return;
      promoted_at_ = Executor::current().now();
      keeps_copies_ = false;  // those that it takes from others
      replicas_[self]->promote(order_.from(self));
    }
    co_await inspect_on(thread);
  }

  Task<> inspect_on(Thread& thread) {
    const std::unique_ptr<MappedMemory> memory = co_await replicas_[told_.inspected]->map(thread);
    for (std::uint32_t i = 0; i < 2; ++i) {
      const Time start = thread.executor.now();
      note_read(history(), inspector(), start, read_cells(cells_, *memory));
      changed();
      if (i == 0) co_await sync(*memory, inspector(), 0, 1);
    }
    answered_ = true;
    changed();
  }

  const MemorySystem& system_;
  MemoryConfig config_;
  MemoryPlan plan_;
  std::uint32_t workers_;
  std::vector<MemoryCell> cells_;
  std::vector<std::uint32_t> starts_;
  std::vector<std::shared_ptr<MemoryReplica>> replicas_;
  // By node: what it followed when it was last closed; empty if it never was open.
  using TermTest = std::function<bool(std::uint64_t term)>;
  std::vector<TermTest> followed_;
  std::vector<std::uint64_t> versions_;  // syncs so far, by client
  std::vector<std::size_t> epochs_;
  MemoryCrashHistory told_;
  MemoryOrder order_;
  // True if no node has failed alone, and copies that do not answer are not given up early.
  bool keeps_copies_;
  // The number of copies, from the mirror on, that have surely heard of the primary.
  std::size_t knowing_ = 0;
  bool promoting_ = false;
  std::vector<std::uint64_t> closed_;
  MemoryBoundariesMet met_;
  std::optional<Time> promoted_at_;  // when the inspected copy was promoted
  bool asked_ = false;
  bool answered_ = false;
  std::vector<std::uint32_t> kept_starts_;
  std::vector<std::uint64_t> kept_versions_;
  std::vector<TermTest> kept_followed_;
  struct Kept {
    std::vector<std::vector<ClientCall<Operation>>> seen;
    MemoryLosses losses;
  };
  Kept kept_;
};

Task<> MemoryCrashScenario::serve(Thread& thread) {
  const NodeId node = thread.node.id();
  if (order_.is_left_out(node)) {
    note_serving(thread);
    for (;;) co_await sleep_for(kForEver);
  }
  if (thread.endpoint.address().port > 0) {
    while (!replicas_[node]) co_await sleep_for(kLook);
    const std::shared_ptr<MemoryReplica> replica = replicas_[node];
    if (node != primary()) co_await replica->serve(thread);
    for (;;) co_await sleep_for(kForEver);
  }
  ++starts_[node];
  MemoryConfig config = config_;
  config.nodes = order_.nodes();
  const Opened opened(*this, node, system_.open(thread, "memory", config, order_.role_of(node)));
  if (order_.has_missed(node)) {
    replicas_[node]->note_missed();
    order_.end_missing(node);
  }
  note_serving(thread);
  changed();
  if (node == primary()) {
    while (!asked_ || told_.inspected != node) co_await sleep_for(kLook);
    co_await inspect_on(thread);
    for (;;) co_await sleep_for(kForEver);
  }
  if (plan_.reads) thread.executor.spawn(watch(thread));
  const bool may_be_inspected = order_.place_of(node) == plan_.promoted || plan_.moves_any();
  if (may_be_inspected) thread.executor.spawn(be_promoted(thread));
  co_await replicas_[node]->serve(thread);
}

// An application's thread. If a copy has taken the place of a primary that is away, the first of
// these threads promotes it.
Task<> MemoryCrashScenario::use(Thread& thread, std::uint32_t number) {
  const std::size_t epoch = epochs_[number]++;
  if (epoch >= plan_.epochs[number].size()) co_return;
  const MemoryThreadPlan& plan = plan_.epochs[number][epoch];
  if (plan.syncs == 0) co_return;
  while (!all_open() || promoting_) co_await sleep_for(kLook);
  co_await promote_primary();
  const std::shared_ptr<MemoryReplica> replica = replicas_[primary()];
  const std::unique_ptr<MappedMemory> memory = co_await replica->map(thread);
  knowing_ = std::max<std::size_t>(knowing_, 1);
  // A primary that was without a copy goes on with what it has stored itself, synced or not.
  const bool is_of_copies = told_.losses.moved && !told_.losses.failed_alone;
  if (is_of_copies) co_await read_promoted(*memory, number);
  for (std::size_t i = 0; i < plan.syncs; ++i) {
    const bool synced = co_await sync(*memory, number, number, i);
    if (!synced) co_return;
    if (plan.pause > Picoseconds{}) co_await sleep_for(plan.pause);
  }
  co_await memory->settle();
  note_lost_copies();
}

Task<> MemoryCrashScenario::promote_primary() {
  const std::shared_ptr<MemoryReplica> replica = replicas_[primary()];
  if (replica->role() == MemoryRole::primary) co_return;
  promoting_ = true;
  replica->promote(order_.nodes());
  co_await yield();  // others must not go on before it is durable
  promoting_ = false;
}

// Reads all cells where the application goes on. Nothing is noted if another thread stores
// meanwhile, since the cells would not be of one instant then.
Task<> MemoryCrashScenario::read_promoted(MappedMemory& memory, std::uint32_t number) {
  co_await yield();  // as in sync()
  if (!under_way().empty()) co_return;
  const Time start = Executor::current().now();
  State found = read_cells(cells_, memory);
  note_read(history(), number, start, std::move(found));
  changed();
}

// Has a thread of the inspected node itself inspect, as an application there would.
Task<> MemoryCrashScenario::inspect(Thread&) {
  while (clients_at_work() > 0 || !all_open()) co_await sleep_for(kLook);
  note_lost_copies();
  const NodeId wanted =
      plan_.promoted < order_.nodes().size() ? order_.nodes()[plan_.promoted] : primary();
  // Application threads that had nothing to do have not promoted the copy on which they go on.
  co_await promote_primary();
  told_.inspected = may_be_promoted(wanted, Executor::current().now()) ? wanted : primary();
  asked_ = true;
  while (!answered_) co_await sleep_for(kLook);
}

void MemoryCrashScenario::note_failure(const ServerFailure& failure) {
  note_lost_copies();
  if (failure.alone) keeps_copies_ = false;
  const bool was_moved = order_.has_moved();
  const MemoryOrder before = order_;
  const bool was_last = before.nodes().size() == 1;
  const bool of_primary = order_.note_failure(failure, system_.synced_copies, [&](NodeId copy) {
    return may_be_promoted(copy, failure.when);
  });
  told_.losses.moved = order_.has_moved();
  if (!of_primary) return;
  if (before.place_of(primary()) > knowing_) ++met_.promoted_unheard;
  knowing_ = 0;
  promoting_ = false;
  if (!was_moved) return;
  ++met_.promoted_failed;
  // It was the last node, so it had no copy.
  if (was_last) told_.losses.failed_alone = true;
}

MemoryConfig config_for(const MemorySystem& system, const CrashSetup& setup,
                        const MemoryPlan& plan) {
  MemoryConfig config{
      .size = plan.layout.region, .threads = kMemoryThreads, .parameters = setup.parameters};
  config.nodes.clear();
  for (NodeId node = 0; node <= plan.copies; ++node) config.nodes.push_back(node);
  add_missing(system.small, config.parameters);
  if (setup.correct) {
    config.method = methods::choose({{setup.model, pmem::Medium::pm}}, *system.update, {});
  }
  system.check(config);
  return config;
}

}  // namespace

std::span<const CrashSchedule> memory_schedules() { return kSchedules; }

CrashHistory memory_crash_history(const MemorySystem& system, const CrashSetup& setup) {
  const MemoryPlan plan = threads_plan(system);
  return [&system, plan, config = config_for(system, setup, plan)] {
    return std::make_unique<MemoryCrashScenario>(system, config, plan);
  };
}

std::unique_ptr<CrashScenario> memory_generated_scenario(const MemorySystem& system,
                                                         const CrashSetup& setup, pmem::Tape& tape,
                                                         std::uint32_t failures) {
  MemoryPlan plan = generated_memory_plan(system, tape, failures);
  MemoryConfig config = config_for(system, setup, plan);
  if (system.update) {
    constexpr std::array<std::uint64_t, 3> kSlots{4, 5, 16};
    constexpr std::array<std::uint64_t, 3> kThresh{1, 3, 100};
    pmem::Choices& store = tape.stream("store");
    config.parameters["log_slots"] = kSlots[store.choose(kSlots.size())];
    config.parameters["checkpoint_thresh"] = kThresh[store.choose(kThresh.size())];
    config.parameters["connections"] = 2 - store.choose(2);
    constexpr std::array<std::uint64_t, 3> kTimeouts{500'000, 100, 10};
    pmem::Choices& patience = tape.stream("patience");
    const std::size_t timeout = patience.choose(kTimeouts.size());
    const std::size_t resends_less = patience.choose(4);
    config.parameters["timeout_us"] = kTimeouts[timeout];
    config.parameters["resends"] = 3 - resends_less;
    // No more than two connections of a run are broken (explore/plan.cc).
    plan.is_patient = timeout == 0 && resends_less < 2;
  }
  return std::make_unique<MemoryCrashScenario>(system, std::move(config), std::move(plan));
}

}  // namespace perdura::services
