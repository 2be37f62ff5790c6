#include "services/memory/crash_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "platform/base/error.h"
#include "platform/pmem/view.h"
#include "services/judge.h"
#include "services/memory/cell_judge.h"
#include "services/memory/copy_reads.h"
#include "services/memory/specification.h"

namespace perdura::services {

namespace {

using Operation = MemorySpecification::Operation;
using State = MemorySpecification::State;

constexpr NodeId kPrimary = 0;
constexpr NodeId kMirror = 1;
constexpr std::uint32_t kThreads = 2;
constexpr Picoseconds kLook = Microseconds(10);  // at what is waited for
constexpr Picoseconds kRead = Microseconds(3);   // between two reads of a copy
// Versions that client number c stores are those between c and c + 1 times this.
constexpr std::uint64_t kVersionsOfClient = 1000;

constexpr CrashSchedule kSchedules[] = {
    {"threads", "two threads of an application sync, and the mirror's copy is read"},
};

// All words of a cell hold its version.
struct Cell {
  Bytes offset = 0;
  Bytes length = 8;
};

constexpr Bytes kLargeCell = 360;
// Where systems keep something for each page of a region.
constexpr Bytes kPage = 4 * KiB;

// How large the region is, and where the large cell of each thread begins.
struct MemoryLayout {
  Bytes region = 1 * KiB;
  std::array<Bytes, kThreads> large{256, 640};
};

// The large cell of each thread begins this many bytes before a page ends, and goes into the next.
MemoryLayout layout_over_pages(Bytes before) {
  return {3 * kPage, {kPage - before, 2 * kPage - before}};
}

// Cells of different threads share a line; the large one is not aligned to lines, and takes several
// requests where slots are small.
std::vector<Cell> cells_of(const MemoryLayout& layout, std::uint32_t thread) {
  return {{thread * kWord, kWord},
          {kCacheLine + thread * kWord, kWord},
          {layout.large.at(thread), kLargeCell}};
}

bool goes_into_a_second_page(const Cell& cell) {
  return cell.offset / kPage != (cell.offset + cell.length - 1) / kPage;
}
constexpr std::size_t kCellsOfThread = 3;
// A cell that is stored to and never synced.
constexpr Cell kUnsynced{2 * kCacheLine, kWord};

// What a thread does between two failures.
struct ThreadPlan {
  std::size_t syncs = 0;
  Picoseconds pause{};  // behind each
};
struct MemoryPlan {
  std::vector<std::vector<ThreadPlan>> epochs;  // by thread
  MemoryLayout layout{};
  bool reads = true;  // the copies are read meanwhile
  // The copy that is promoted for the inspection, if it may be; 0: none, the primary is inspected.
  NodeId promoted = kPrimary;
  // Boundaries that runs must meet are counted (MemoryCrashScenario::events()).
  bool is_generated = false;
};

class MemoryCrashScenario final : public CrashScenario {
 public:
  MemoryCrashScenario(const MemorySystem& system, MemoryConfig config, MemoryPlan plan)
      : system_(system),
        config_(std::move(config)),
        plan_(std::move(plan)),
        workers_(system.workers(config_)),
        starts_(config_.nodes.size()),
        replicas_(config_.nodes.size()),
        versions_(config_.threads + 1),
        epochs_(config_.threads),
        seen_(config_.nodes.size()) {
    for (std::uint32_t thread = 0; thread < config_.threads; ++thread) {
      for (const Cell& cell : cells_of(plan_.layout, thread)) cells_.push_back(cell);
    }
    specification_.cells = cells_.size();
  }

  NodeId servers() const override { return static_cast<NodeId>(config_.nodes.size()); }
  std::uint32_t clients() const override { return config_.threads; }
  NodeId node_of_client(std::uint32_t) const override { return kPrimary; }
  std::uint32_t workers() const override { return workers_; }

  Task<> serve(Thread& thread) override {
    const NodeId node = thread.node.id();
    if (thread.endpoint.address().port > 0) {
      while (!replicas_[node]) co_await sleep_for(kLook);
      const std::shared_ptr<MemoryReplica> replica = replicas_[node];
      if (node != kPrimary) co_await replica->serve(thread);
      for (;;) co_await sleep_for(kForEver);
    }
    ++starts_[node];
    const MemoryRole role = node == kPrimary  ? MemoryRole::primary
                            : node == kMirror ? MemoryRole::mirror
                                              : MemoryRole::backup;
    const Opened opened(*this, node, system_.open(thread, "memory", config_, role));
    note_serving();
    changed();
    if (node == kPrimary) {
      while (!asked_ || inspected_ != kPrimary) co_await sleep_for(kLook);
      co_await inspect_on(thread);
      for (;;) co_await sleep_for(kForEver);
    }
    if (plan_.reads) thread.executor.spawn(watch(thread));
    if (node == plan_.promoted) thread.executor.spawn(be_promoted(thread));
    co_await replicas_[node]->serve(thread);
  }

  // An application's thread.
  Task<> use(Thread& thread, std::uint32_t number) override {
    const std::size_t epoch = epochs_[number]++;
    if (epoch >= plan_.epochs[number].size()) co_return;
    const ThreadPlan& plan = plan_.epochs[number][epoch];
    if (plan.syncs == 0) co_return;
    while (!all_open()) co_await sleep_for(kLook);
    const std::unique_ptr<MappedMemory> memory = co_await replicas_[kPrimary]->map(thread);
    for (std::size_t i = 0; i < plan.syncs; ++i) {
      const bool synced = co_await sync(*memory, number, number, i);
      if (!synced) co_return;
      if (plan.pause > Picoseconds{}) co_await sleep_for(plan.pause);
    }
    co_await memory->settle();
    note_lost_copies();
  }

  // A thread of the node itself inspects, as an application on it.
  Task<> inspect(Thread&) override {
    while (clients_at_work() > 0 || !all_open()) co_await sleep_for(kLook);
    note_lost_copies();
    inspected_ = may_be_promoted(plan_.promoted) ? plan_.promoted : kPrimary;
    asked_ = true;
    while (!answered_) co_await sleep_for(kLook);
  }

  // A copy that fails alone takes nothing from applications, which go on.
  CrashVerdict judge(std::span<const ServerFailure> failures,
                     const CrashLevels& levels) const override {
    if (lags(inspected_)) return judge_promoted(failures, levels);
    std::vector<Time> of_primary;
    for (const ServerFailure& failure : failures) {
      if (failure.alone.value_or(kPrimary) == kPrimary) of_primary.push_back(failure.when);
    }
    CrashVerdict verdict = judge_with(of_primary, levels);
    if (of_primary.empty() && !failures.empty()) verdict.let_nothing_be_lost();
    return verdict;
  }

  // A copy that gets sync points in the background may lack the last ones when it is promoted, as
  // if a failure had taken them. It must have those before them, each as a whole, and nothing else.
  CrashVerdict judge_promoted(std::span<const ServerFailure> failures,
                              const CrashLevels& levels) const {
    if (!levels.any()) return {};
    std::vector<Time> times = times_of(failures);
    if (promoted_at_) times.push_back(*promoted_at_);
    CrashVerdict verdict =
        judge_history(specification_, calls_, inspector(), times, problem(),
                      {.durable = false, .acknowledged = false, .observed = false});
    verdict.durable = verdict.acknowledged = verdict.observed = verdict.ordered;
    return verdict;
  }

  CrashVerdict judge_with(std::span<const Time> failures, const CrashLevels& levels) const {
    if (losses_.failed_alone) {
      return judge_cells(calls_, cells_.size(), inspector(), failures, problem(), levels);
    }
    CrashVerdict verdict =
        judge_history(specification_, calls_, inspector(), failures, problem(), levels);
    const bool is_judged = levels.durable || levels.observed;
    if (!is_judged || !verdict.durable.empty() || losses_.one_of_several) return verdict;
    for (NodeId copy = kMirror; copy < seen_.size(); ++copy) {
      const std::string wrong =
          impossible_read(calls_, what_was_read(copy), config_.threads, kCellsOfThread);
      if (wrong.empty()) continue;
      auto told = calls_;
      told.insert(told.end(), seen_[copy].begin(), seen_[copy].end());
      verdict.durable = verdict.observed =
          HistoryJudge<MemorySpecification>(specification_, told, inspector(), failures)
              .trace(fmt::format("{} of node {}", wrong, copy));
      return verdict;
    }
    return verdict;
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
    events["sync points into a second page"] = into_second_page_;
    if (system_.copies.most > system_.copies.least) {
      events["sync points with more copies than the fewest"] = with_more_copies_;
    }
    return events;
  }
  std::span<const Event> expected_events() const override { return system_.events; }
  bool loses_with_processes() const override {
    return system_.info.level < GuaranteeLevel::durable_writes;
  }
  bool waits_for_operation() const override { return under_way_ > 0 || (asked_ && !answered_); }
  std::vector<CrashCall> calls() const override;

 protected:
  void keep_observations() override {
    kept_calls_ = calls_.size();
    kept_seen_ = seen_;
    kept_starts_ = starts_;
    kept_versions_ = versions_;
    // This failure is not over yet.
    note_lost_copies();
    kept_losses_ = losses_;
    if (is_unreplicated(replicas_[kPrimary])) kept_losses_.failed_alone = true;
  }
  void return_to_observations() override {
    calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(kept_calls_), calls_.end());
    seen_ = kept_seen_;
    starts_ = kept_starts_;
    versions_ = kept_versions_;
    losses_ = kept_losses_;
    asked_ = answered_ = false;
    promoted_at_.reset();
  }
  std::string found_since() const override {
    std::string found;
    for (std::size_t i = kept_calls_; i < calls_.size(); ++i) {
      const auto& call = calls_[i].call;
      found += fmt::format("{}{};", specification_.text(call), call.answered);
    }
    return found;
  }

 private:
  static constexpr Picoseconds kForEver = std::chrono::seconds(1);

  // A replica for as long as it is open.
  class Opened {
   public:
    Opened(MemoryCrashScenario& scenario, NodeId node, std::shared_ptr<MemoryReplica> replica)
        : scenario_(scenario), node_(node) {
      scenario.replicas_[node] = std::move(replica);
    }
    ~Opened() {
      scenario_.note_lost_copies();
      if (is_unreplicated(scenario_.replicas_[node_])) scenario_.losses_.failed_alone = true;
      const std::vector<std::uint64_t> events = scenario_.replicas_[node_]->events();
      scenario_.closed_.resize(events.size());
      for (std::size_t i = 0; i < events.size(); ++i) scenario_.closed_[i] += events[i];
      scenario_.replicas_[node_].reset();
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

   private:
    MemoryCrashScenario& scenario_;
    NodeId node_;
  };

  std::uint32_t inspector() const { return clients(); }
  std::uint32_t reader_of(NodeId copy) const { return clients() + copy; }

  bool all_open() const {
    return std::all_of(replicas_.begin(), replicas_.end(),
                       [](const auto& replica) { return replica != nullptr; });
  }
  static bool is_unreplicated(const std::shared_ptr<MemoryReplica>& replica) {
    return replica && replica->is_unreplicated();
  }
  // Who has given up a copy may have gone on without it.
  void note_lost_copies() {
    for (const auto& replica : replicas_) {
      for (NodeId copy = kMirror; replica && copy < replicas_.size(); ++copy) {
        losses_.any_copy = losses_.any_copy || replica->has_lost(copy);
      }
    }
    const auto& primary = replicas_[kPrimary];
    for (NodeId copy = kMirror; primary && copy < replicas_.size(); ++copy) {
      losses_.one_of_several =
          losses_.one_of_several || (primary->has_lost(copy) && !primary->is_unreplicated());
    }
  }
  // Whether nobody waits for what the node gets.
  bool lags(NodeId node) const { return node > system_.synced_copies; }
  // Whether a copy has all that was acknowledged, or all up to a sync point if it lags.
  bool may_be_promoted(NodeId copy) const {
    return copy != kPrimary && !losses_.any_copy && replicas_[copy]->is_complete();
  }
  // By a reader of this copy. Of what it sees while the inspector works nothing can be said: copies
  // lag behind. But the inspector must see all that it has seen if its node has got it before this
  // copy, as the mirror, from which a primary that has failed is loaded, always has.
  std::vector<ClientCall<Operation>> what_was_read(NodeId copy) const {
    std::vector<ClientCall<Operation>> reads = seen_[copy];
    const auto inspection = std::find_if(
        calls_.begin(), calls_.end(), [&](const auto& call) { return call.client == inspector(); });
    if (inspection == calls_.end()) return reads;
    std::erase_if(reads, [&](const auto& read) { return read.call.end >= inspection->call.start; });
    if (inspected_ <= copy) reads.push_back(*inspection);
    return reads;
  }

  // The cells that a thread stores to at its sync point number `turn`.
  std::vector<std::size_t> cells_at(std::uint32_t thread, std::size_t turn) const {
    constexpr std::array<std::array<bool, kCellsOfThread>, 4> kTurns{
        {{true, false, false}, {true, false, true}, {false, true, false}, {true, true, true}}};
    std::vector<std::size_t> cells;
    for (std::size_t cell = 0; cell < kCellsOfThread; ++cell) {
      if (kTurns[turn % kTurns.size()][cell]) cells.push_back(thread * kCellsOfThread + cell);
    }
    return cells;
  }

  void store(pmem::Region& region, const Cell& cell, std::uint64_t version) const {
    const pmem::View<std::uint64_t> words(region, cell.offset, cell.length / kWord);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = version;
  }

  Task<bool> sync(MappedMemory& memory, std::uint32_t client, std::uint32_t thread,
                  std::size_t turn) {
    // A thread that has worked without a pause, as to map the region, is ahead of the simulation's
    // time: others would see its stores too early.
    co_await yield();
    const std::size_t index = calls_.size();
    Operation operation;
    std::vector<MemoryRange> ranges;
    const std::uint64_t version = client * kVersionsOfClient + ++versions_[client];
    for (const std::size_t cell : cells_at(thread, turn)) {
      operation.stored.emplace_back(cell, version);
      ranges.push_back({cells_[cell].offset, cells_[cell].length});
    }
    calls_.push_back({{operation, Executor::current().now(), Time::max(), false}, client});
    const ScopedCount under_way(under_way_);
    changed();
    store(memory.region(), kUnsynced, version);
    for (const auto& [cell, stored] : operation.stored) {
      store(memory.region(), cells_[cell], stored);
    }
    const auto done = co_await memory.sync(ranges);
    note_lost_copies();
    // So is one whose sync waits for nobody: a failure before the end must find it unanswered.
    co_await yield();
    if (!done) {
      note_problem(fmt::format("a sync ends with '{}'", to_string(done.error())));
      co_return false;
    }
    calls_[index].call.end = Executor::current().now();
    calls_[index].call.answered = true;
    count_boundaries(operation);
    changed();
    co_return true;
  }

  void count_boundaries(const Operation& synced) {
    const bool second_page = std::any_of(
        synced.stored.begin(), synced.stored.end(),
        [&](const auto& stored) { return goes_into_a_second_page(cells_[stored.first]); });
    if (second_page) ++into_second_page_;
    if (config_.nodes.size() > 1 + system_.copies.least) ++with_more_copies_;
  }

  template <class ReadBytes>
  std::uint64_t read_cell(const Cell& cell, ReadBytes read_bytes) const {
    std::vector<std::uint64_t> words(cell.length / kWord);
    read_bytes(cell.offset, std::as_writable_bytes(std::span(words)));
    const bool whole = std::all_of(words.begin(), words.end(),
                                   [&](std::uint64_t word) { return word == words.front(); });
    return whole ? words.front() : kTornCell;
  }

  // What all cells hold, of a copy that is read at one instant.
  State read_all(MemoryReplica& replica) const {
    std::vector<std::byte> region(config_.size);
    replica.read(0, region);
    const auto read_bytes = [&](Bytes offset, std::span<std::byte> into) {
      std::copy_n(region.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    };
    State found;
    for (const Cell& cell : cells_) found.push_back(read_cell(cell, read_bytes));
    return found;
  }

  void note_read(std::vector<ClientCall<Operation>>& calls, std::uint32_t client, Time start,
                 State found) {
    Operation operation{.kind = Operation::Kind::read, .found = std::move(found)};
    calls.push_back({{std::move(operation), start, Executor::current().now(), true}, client});
  }

  // A reader of the thread's copy, as long as there are application threads.
  Task<> watch(Thread& thread) {
    const NodeId copy = thread.node.id();
    std::vector<ClientCall<Operation>>& seen = seen_[copy];
    while (clients_at_work() == 0) co_await sleep_for(kLook);
    while (clients_at_work() > 0) {
      const std::shared_ptr<MemoryReplica> replica = replicas_[copy];
      if (!replica->is_complete()) {
        co_await sleep_for(kRead);
        continue;
      }
      const Time start = thread.executor.now();
      State found = read_all(*replica);
      co_await yield();  // as in sync()
      if (seen.empty() || seen.back().call.operation.found != found) {
        note_read(seen, reader_of(copy), start, std::move(found));
      }
      std::uint64_t unsynced = 0;
      replica->read(kUnsynced.offset, std::as_writable_bytes(std::span(&unsynced, 1)));
      // A copy that was made of a running primary, or of one that has gone on alone, has what had
      // been stored by then.
      const bool was_copied =
          losses_.any_copy || std::any_of(starts_.begin() + kMirror, starts_.end(),
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
    if (inspected_ != self) co_return;
    // A node before it may have begun meanwhile to give it the region.
    if (!may_be_promoted(self)) inspected_ = kPrimary;
    if (inspected_ != self) co_return;
    promoted_at_ = Executor::current().now();
    replicas_[self]->promote({config_.nodes.begin() + self, config_.nodes.end()});
    co_await inspect_on(thread);
  }

  Task<> inspect_on(Thread& thread) {
    const std::unique_ptr<MappedMemory> memory = co_await replicas_[inspected_]->map(thread);
    for (std::uint32_t i = 0; i < 2; ++i) {
      const Time start = thread.executor.now();
      State found;
      for (const Cell& cell : cells_) {
        found.push_back(read_cell(cell, [&](Bytes offset, std::span<std::byte> into) {
          memory->region().read(offset, into);
        }));
      }
      note_read(calls_, inspector(), start, std::move(found));
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
  MemorySpecification specification_;
  std::vector<Cell> cells_;
  std::vector<std::uint32_t> starts_;
  std::vector<std::shared_ptr<MemoryReplica>> replicas_;
  std::vector<std::uint64_t> versions_;  // syncs so far, by client
  std::vector<std::size_t> epochs_;
  std::vector<ClientCall<Operation>> calls_;
  std::vector<std::vector<ClientCall<Operation>>> seen_;  // by the reader of each copy
  // In the whole run.
  struct Losses {
    bool any_copy = false;        // has been given up
    bool one_of_several = false;  // so what was seen only there may be lost
    bool failed_alone = false;    // the primary
  };
  Losses losses_;
  std::vector<std::uint64_t> closed_;
  std::uint64_t into_second_page_ = 0;
  std::uint64_t with_more_copies_ = 0;
  std::uint32_t under_way_ = 0;
  NodeId inspected_ = kPrimary;
  std::optional<Time> promoted_at_;
  bool asked_ = false;
  bool answered_ = false;
  std::size_t kept_calls_ = 0;
  std::vector<std::vector<ClientCall<Operation>>> kept_seen_;
  std::vector<std::uint32_t> kept_starts_;
  std::vector<std::uint64_t> kept_versions_;
  Losses kept_losses_;
};

std::vector<CrashCall> MemoryCrashScenario::calls() const {
  std::vector<CrashCall> calls;
  for (const ClientCall<Operation>& one : calls_) {
    const Operation& operation = one.call.operation;
    CrashCall& call = calls.emplace_back();
    call.client = one.client;
    call.start = one.call.start;
    if (one.call.answered) call.end = one.call.end;
    call.changes = MemorySpecification{}.changes(operation);
    call.what = MemorySpecification::what(operation);
    if (one.call.answered) {
      call.told = call.changes ? "done" : fmt::format("{}", fmt::join(operation.found, " "));
    }
    const auto add_value = [&](std::uint64_t version) {
      const auto bytes = std::as_bytes(std::span(&version, 1));
      call.values.push_back({version, {bytes.begin(), bytes.end()}});
    };
    for (const auto& [cell, version] : operation.stored) add_value(version);
    for (const std::uint64_t version : operation.found) add_value(version);
  }
  return calls;
}

MemoryConfig config_for(const MemorySystem& system, const CrashSetup& setup,
                        const MemoryLayout& layout, std::uint32_t copies) {
  MemoryConfig config{.size = layout.region, .threads = kThreads, .parameters = setup.parameters};
  config.nodes.clear();
  for (NodeId node = 0; node <= copies; ++node) config.nodes.push_back(node);
  for (const Setting& setting : system.small) {
    config.parameters.try_emplace(std::string(setting.name), setting.value.value());
  }
  if (setup.correct) {
    config.method = persistence::choose({{setup.model, pmem::Medium::pm}}, *system.update, {});
  }
  system.check(config);
  return config;
}

}  // namespace

std::span<const CrashSchedule> memory_schedules() { return kSchedules; }

CrashHistory memory_crash_history(const MemorySystem& system, const CrashSetup& setup) {
  return [&system, config = config_for(system, setup, {}, system.copies.least)] {
    const MemoryPlan plan{.epochs = {{{4}}, {{3}}}};
    return std::make_unique<MemoryCrashScenario>(system, config, plan);
  };
}

std::unique_ptr<CrashScenario> memory_generated_scenario(const MemorySystem& system,
                                                         const CrashSetup& setup, pmem::Tape& tape,
                                                         std::uint32_t failures) {
  constexpr std::size_t kMostSyncs = 5;
  constexpr std::array<Picoseconds, 3> kPauses{Picoseconds{}, Microseconds(2), Microseconds(20)};
  MemoryPlan plan;
  plan.is_generated = true;
  pmem::Choices& world = tape.stream("world");
  if (world.choose(2) == 1) {
    plan.layout = layout_over_pages((1 + world.choose(kLargeCell / kWord - 1)) * kWord);
  }
  const bool may_have_more = system.copies.most > system.copies.least;
  const auto copies =
      static_cast<std::uint32_t>(system.copies.least + (may_have_more ? world.choose(2) : 0));
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    pmem::Choices& choices = tape.stream(fmt::format("client-{}", thread));
    std::vector<ThreadPlan>& epochs = plan.epochs.emplace_back();
    for (std::uint32_t epoch = 0; epoch <= failures; ++epoch) {
      ThreadPlan& one = epochs.emplace_back();
      one.syncs = choices.choose(kMostSyncs);
      one.pause = kPauses[choices.choose(kPauses.size())];
    }
  }
  pmem::Choices& store = tape.stream("store");
  plan.reads = store.choose(2) == 0;
  plan.promoted = static_cast<NodeId>(tape.stream("promoted").choose(1 + copies));
  MemoryConfig config = config_for(system, setup, plan.layout, copies);
  if (system.update) {
    constexpr std::array<std::uint64_t, 3> kSlots{4, 5, 16};
    constexpr std::array<std::uint64_t, 3> kThresh{1, 3, 100};
    config.parameters["log_slots"] = kSlots[store.choose(kSlots.size())];
    config.parameters["checkpoint_thresh"] = kThresh[store.choose(kThresh.size())];
    config.parameters["connections"] = 2 - store.choose(2);
    constexpr std::array<std::uint64_t, 3> kTimeouts{500'000, 100, 10};
    pmem::Choices& patience = tape.stream("patience");
    config.parameters["timeout_us"] = kTimeouts[patience.choose(kTimeouts.size())];
    config.parameters["resends"] = 3 - patience.choose(4);
  }
  return std::make_unique<MemoryCrashScenario>(system, std::move(config), std::move(plan));
}

}  // namespace perdura::services
