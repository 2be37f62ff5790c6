#include "bench/memory/recovery_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "bench/driver/systems.h"
#include "bench/memory/memory_driver.h"
#include "bench/memory/sync_points.h"
#include "harness/run/interrupt.h"
#include "platform/base/error.h"

namespace perdura::bench {

using services::MappedMemory;
using services::MemoryRange;
using services::MemoryReplica;
using services::MemoryRole;

namespace {

// After the ports of copies' threads, before those at which a primary's own threads listen.
constexpr fabric::Port kPortOfKeeper = 0x3000;
constexpr Picoseconds kLook = Microseconds(5);
constexpr Picoseconds kNowAndThen = Microseconds(100);
constexpr Picoseconds kPatience = std::chrono::seconds(20);
constexpr std::string_view kName = "memory";

// Returns true as soon as `condition` holds, or false when `step` has not changed for so long that
// no more progress can be expected.
template <class Condition, class Step>
Task<bool> comes_true(Condition condition, Step step) {
  Executor& executor = Executor::current();
  Time since = executor.now();
  std::uint64_t before = step();
  while (!condition()) {
    if (harness::interrupted()) co_return false;
    const std::uint64_t now = step();
    if (std::exchange(before, now) != now) since = executor.now();
    const Picoseconds waited = executor.now() - since;
    if (waited > kPatience) co_return false;
    co_await sleep_for(std::max(kLook, waited / 1000));
  }
  co_return true;
}

}  // namespace

struct RecoveryRun::Times {
  Time begin{};
  Time opened{};
  Time end{};
};

RecoveryRun::RecoveryRun(Platform& platform, const harness::Point& point,
                         const services::MemorySystem& system)
    : platform_(platform),
      point_(point),
      system_(system),
      config_(memory_config(point, system)),
      failure_(failure_of(point.settings)),
      results_(config_.nodes.size()),
      nodes_(config_.nodes.size()) {}

harness::Measurement RecoveryRun::execute() {
  const auto nodes = static_cast<std::uint32_t>(config_.nodes.size());
  phases_.emplace(platform_, nodes);
  served_ = platform_.create_barrier(nodes);
  recovered_ = platform_.create_barrier(nodes);
  const bool has_primary = platform_.local_node(config_.nodes.front()) != nullptr;
  if (has_primary) crew_.emplace(1);
  for (const NodeId node : config_.nodes) {
    if (platform_.local_node(node) == nullptr) continue;
    const auto keep = [this](Thread& thread) { return this->keep(thread); };
    if (node == config_.nodes.front()) {
      platform_.start(node, kPortOfKeeper, mode_of(node), keep);
    } else {
      platform_.start_service(node, kPortOfKeeper, mode_of(node), keep);
    }
  }
  platform_.run();
  harness::Measurement result;
  for (const harness::Measurement& of_node : results_) result.merge(of_node);
  if (has_primary) {
    const std::uint64_t clock = platform_.modelled() ? 0 : measure::clock_of_this_host();
    result.at_work = {crew_->at_work(clock, operations_)};
    if (platform_.modelled()) result.harness_per_operation = Picoseconds{};
  }
  phases_->costs().add_to(result, point_.roles);
  return result;
}

std::size_t RecoveryRun::node_index(Thread& thread) const {
  return thread.node.id() - config_.nodes.front();
}

const std::string& RecoveryRun::role_of(NodeId node) const {
  return point_.roles.assignment_of(node).role.name;
}

CompletionMode RecoveryRun::mode_of(NodeId node) const {
  return point_.settings.completion(role_of(node));
}

void RecoveryRun::note_recovery(const Times& times, Bytes replayed,
                                harness::Measurement& result) const {
  const bool copied = receives_region(failure_);
  const double whole = to_microseconds(times.end - times.begin);
  const auto bytes = static_cast<double>(copied ? config_.size : replayed);
  result.declared["recovery_us"] = whole;
  result.declared["recovery_open_us"] = to_microseconds(times.opened - times.begin);
  result.declared["recovery_bytes"] = bytes;
  if (copied) result.declared["recovery_us_per_mb"] = whole / (bytes / 1e6);
}

// The part of a node that can fail: its copy of the region and the threads that use it. Belongs to
// the keeper.
class RecoveryRun::Process {
 public:
  Process(RecoveryRun& run, Thread& keeper) : run_(run), keeper_(keeper) {}

  // Throws what MemorySystem::open throws.
  void open() {
    constexpr std::array kRoles{MemoryRole::primary, MemoryRole::mirror, MemoryRole::backup};
    const MemoryRole role = kRoles[std::min(run_.node_index(keeper_), kRoles.size() - 1)];
    replica_ = run_.system_.open(keeper_, name_, run_.config_, role);
  }
  void start(fabric::Port port, Platform::Body body) {
    const NodeId node = keeper_.node.id();
    threads_.push_back(
        run_.platform_.start_service(node, port, run_.mode_of(node), std::move(body)));
  }
  void kill() {
    for (const auto& thread : threads_) thread->stop();
    threads_.clear();
    replica_.reset();
  }
  // The next one has none of what this one has left; that is another node, or this one's memory has
  // been replaced.
  void lose_memory() {
    keeper_.node.remove_region(name_);
    name_ = fmt::format("{}-of-another-node", kName);
  }
  MemoryReplica* replica() const { return replica_.get(); }

 private:
  RecoveryRun& run_;
  Thread& keeper_;
  std::string name_{kName};
  std::shared_ptr<MemoryReplica> replica_;
  std::vector<std::shared_ptr<StartedThread>> threads_;
};

// --- the primary ---------------------------------------------------------------------------------

class RecoveryRun::PrimaryNode final : public harness::PhaseWork {
 public:
  PrimaryNode(RecoveryRun& run, Thread& thread)
      : run_(run), thread_(thread), process_(run, thread), result_(run.results_.front()) {
    result_.kinds[kSync];  // so that nothing is allocated while measuring
  }

  Task<> prepare() override {
    std::exception_ptr problem;
    try {
      process_.open();
    } catch (...) {
      problem = std::current_exception();
    }
    co_await run_.served_->arrive_and_wait();
    if (problem) std::rethrow_exception(problem);
    start_application();
    co_await until([this] { return mapped_.load(); });
    if (has_problem_) std::rethrow_exception(problem_);
    if (run_.config_.method) {
      result_.method =
          methods::name_in_results(*run_.config_.method, !thread_.endpoint.capabilities().flush);
    }
  }
  void failed(std::exception_ptr problem) override {
    note(std::move(problem), "the application", result_);
  }
  Task<> warm_up() override {
    co_await sync_until(run_.point_.settings.number("warmup"));
    co_await give(Order::wait);
  }
  Task<> operate() override {
    const std::uint64_t operations = run_.point_.settings.number("operations");
    const bool fails = run_.failure_ == Failure::primary_restarts;
    run_.crew_->begin(thread_.executor.now());
    measured_ = true;
    std::vector<double> metrics_before = metrics_;
    const std::uint64_t before = done_;
    co_await sync_until(before + (fails ? operations / 2 : operations));
    if (fails && mapped_ && is_well()) {
      metrics_before.clear();
      co_await fail_and_recover();
      co_await sync_until(before + operations);
    }
    // It goes on until the others have recovered, which may need sync points from after the
    // failure.
    co_await give(Order::sync_now_and_then);
    co_await run_.recovered_->arrive_and_wait();
    co_await give(Order::wait);
    measured_ = false;
    run_.crew_->end(last_);
    run_.operations_ = result_.kinds[kSync].operations;
    if (first_ < last_) result_.elapsed = last_ - first_;
    if (harness::interrupted()) result_.interrupted = true;
    const std::vector<double> counted = services::metrics_since(metrics_, metrics_before);
    add_counted(run_.system_.session_metrics, std::span(&counted, 1), result_);
  }
  Task<> settle() override { co_await give(Order::settle); }
  void collect() override {
    if (process_.replica() == nullptr || !is_well()) return;
    result_.evidence.push_back(contents_of(*process_.replica(), run_.config_.size));
  }

 private:
  // The order that the application follows until it is given another one.
  enum class Order : std::uint32_t { wait, sync, sync_now_and_then, settle };
  static constexpr std::uint32_t kOrders = 4;

  void start_application() {
    process_.start(0, [this](Thread& thread) { return apply(thread); });
  }
  bool is_well() const { return !has_problem_; }
  // Whatever the application waits for ends by itself, at the latest when a copy is given up.
  template <class Condition>
  Task<> until(Condition condition) {
    while (!condition() && is_well() && !harness::interrupted()) co_await sleep_for(kLook);
  }
  Task<> give(Order order) {
    if (!mapped_) co_return;
    const std::uint32_t given = ++orders_ * kOrders + static_cast<std::uint32_t>(order);
    co_await yield();  // a task is ahead of time, and the application must not hear it earlier
    order_ = given;
    co_await until([&] { return followed_ == given; });
    report_problem();
  }
  Task<> sync_until(std::uint64_t count) {
    co_await give(Order::sync);
    if (mapped_) co_await until([&] { return done_ >= count; });
  }
  void report_problem() {
    if (is_well() || !problem_) return;
    note(std::exchange(problem_, nullptr), "the application", result_);
  }
  Task<> fail_and_recover() {
    process_.kill();
    mapped_ = false;
    Times times{.begin = thread_.executor.now()};
    try {
      process_.open();
    } catch (...) {
      fail_with(std::current_exception());
    }
    times.opened = thread_.executor.now();
    co_await yield();
    if (is_well()) {
      start_application();
      co_await until([this] { return mapped_.load(); });
    }
    report_problem();
    if (!mapped_) co_return;
    times.end = mapped_at_;
    run_.note_recovery(times, 0, result_);
  }

  Task<> apply(Thread& thread);
  Task<> sync(MappedMemory& memory, SyncPoints& points);
  Task<> settle(MappedMemory& memory);
  bool check(const tl::expected<void, services::SyncError>& synced);
  void fail_with(std::exception_ptr problem) {
    problem_ = std::move(problem);
    has_problem_ = true;
  }

  RecoveryRun& run_;
  Thread& thread_;
  Process process_;
  harness::Measurement& result_;
  std::uint32_t orders_ = 0;
  std::uint64_t lives_ = 0;
  // Written by the application's thread, which does not run while the keeper uses them.
  Time first_ = Time::max();
  Time last_ = Time::min();
  Time mapped_at_{};
  std::uint64_t settled_ = 0;
  std::vector<double> metrics_;  // counted since it has mapped the region
  std::exception_ptr problem_;
  // Shared by both threads.
  std::atomic<bool> mapped_{false};
  std::atomic<bool> has_problem_{false};
  std::atomic<bool> measured_{false};
  std::atomic<std::uint32_t> order_{0};
  std::atomic<std::uint32_t> followed_{0};
  std::atomic<std::uint64_t> done_{0};  // sync points
};

// The application's thread.
Task<> RecoveryRun::PrimaryNode::apply(Thread& thread) {
  try {
    SyncPoints points(run_.point_, 1, 0, lives_++);
    const auto memory = co_await process_.replica()->map(thread);
    mapped_at_ = thread.executor.now();
    co_await yield();
    mapped_ = true;
    for (;;) {
      const std::uint32_t order = order_;
      const bool is_new = followed_ != order;
      Picoseconds pause = kLook;
      switch (static_cast<Order>(order % kOrders)) {
        case Order::wait:
          if (is_new) metrics_ = memory->metrics();
          break;
        case Order::sync:
          co_await sync(*memory, points);
          pause = Picoseconds{};
          break;
        case Order::sync_now_and_then:
          co_await sync(*memory, points);
          pause = kNowAndThen;
          break;
        case Order::settle:
          if (is_new) co_await settle(*memory);
          break;
      }
      co_await yield();
      followed_ = order;
      if (pause > Picoseconds{}) co_await sleep_for(pause);
    }
  } catch (...) {
    fail_with(std::current_exception());
  }
  WaitList for_ever;  // the keeper ends it
  co_await wait(for_ever);
}

Task<> RecoveryRun::PrimaryNode::sync(MappedMemory& memory, SyncPoints& points) {
  const std::span<const MemoryRange> ranges = points.store(memory.region());
  // A sync that waits for nobody does not let simulated time pass for others.
  co_await yield();
  Executor& executor = Executor::current();
  const Time start = executor.begin();
  const auto synced = co_await memory.sync(ranges);
  const Time end = executor.now();
  const bool done = check(synced);
  ++done_;
  if (!measured_) co_return;
  harness::KindMeasurement& kind = result_.kinds[kSync];
  ++kind.operations;
  first_ = std::min(first_, start);
  last_ = end;
  if (!done) {
    ++kind.errors;
    co_return;
  }
  kind.latency.record(
      static_cast<std::uint64_t>(std::chrono::duration_cast<Nanoseconds>(end - start).count()));
}

Task<> RecoveryRun::PrimaryNode::settle(MappedMemory& memory) {
  co_await memory.settle();
  const Bytes counter = counter_of(run_.point_);
  memory.region().store(counter, ++settled_);
  check(co_await memory.sync(MemoryRange{counter, kWord}));
  co_await memory.settle();
}

bool RecoveryRun::PrimaryNode::check(const tl::expected<void, services::SyncError>& synced) {
  if (synced) return true;
  result_.judge(harness::Verdict::failed,
                fmt::format("a sync ended with '{}'", to_string(synced.error())));
  return false;
}

// --- the copies ----------------------------------------------------------------------------------

class RecoveryRun::CopyNode final : public harness::PhaseWork {
 public:
  CopyNode(RecoveryRun& run, Thread& thread)
      : run_(run),
        thread_(thread),
        process_(run, thread),
        result_(run.results_[run.node_index(thread)]) {}

  Task<> prepare() override {
    std::exception_ptr problem;
    try {
      process_.open();
      serve();
    } catch (...) {
      problem = std::current_exception();
    }
    co_await run_.served_->arrive_and_wait();
    if (problem) std::rethrow_exception(problem);
  }
  void failed(std::exception_ptr problem) override {
    note(std::move(problem), role_name(), result_);
  }
  Task<> operate() override {
    const bool fails = failing(run_.failure_) == run_.node_index(thread_);
    if (fails && process_.replica() != nullptr) {
      try {
        co_await fail_and_recover();
      } catch (...) {
        note(std::current_exception(), role_name(), result_);
      }
    }
    co_await run_.recovered_->arrive_and_wait();
  }
  Task<> settle() override {
    ++settled_;
    MemoryReplica* const replica = process_.replica();
    if (replica == nullptr || result_.verdict != harness::Verdict::valid) co_return;
    // A copy that is being given the region may have what is new without what came before.
    const auto is_settled = [&] {
      return replica->is_complete() && counted_in(*replica, run_.point_) == settled_;
    };
    const bool has_settled = co_await comes_true(is_settled, [&] { return replica->position(); });
    if (!has_settled) {
      result_.judge(harness::Verdict::invalid,
                    fmt::format("the {} does not get what has been synced", role_name()));
    }
  }
  void collect() override {
    if (process_.replica() == nullptr || result_.verdict != harness::Verdict::valid) return;
    result_.evidence.push_back(contents_of(*process_.replica(), run_.config_.size));
  }

 private:
  const std::string& role_name() const { return run_.role_of(thread_.node.id()); }
  void serve() {
    MemoryReplica* const replica = process_.replica();
    const std::uint32_t workers = run_.system_.workers(run_.config_);
    for (std::uint32_t worker = 0; worker < workers; ++worker) {
      process_.start(static_cast<fabric::Port>(worker),
                     [replica](Thread& thread) { return replica->serve(thread); });
    }
  }
  Task<> fail_and_recover();

  RecoveryRun& run_;
  Thread& thread_;
  Process process_;
  harness::Measurement& result_;
  std::uint64_t settled_ = 0;
};

Task<> RecoveryRun::CopyNode::fail_and_recover() {
  const auto position = [this] { return process_.replica()->position(); };
  // In the middle: a sync point is at least one request, by which the position grows.
  const std::uint64_t half = run_.point_.settings.number("operations") / 2;
  const std::uint64_t fails_at = position() + half;
  const bool is_half = co_await comes_true([&] { return position() >= fails_at; }, position);
  if (!is_half) {
    result_.judge(harness::Verdict::invalid,
                  fmt::format("the {} does not get what has been synced", role_name()));
    co_return;
  }
  process_.kill();
  if (run_.failure_ == Failure::mirror_lost) co_return;
  if (receives_region(run_.failure_)) process_.lose_memory();
  const std::uint64_t written = thread_.node.pm_writes().local_store.bytes_issued;
  Times times{.begin = thread_.executor.now()};
  process_.open();
  times.opened = thread_.executor.now();
  const Bytes replayed = thread_.node.pm_writes().local_store.bytes_issued - written;
  const std::uint64_t opened_at = position();
  co_await yield();  // a task is ahead of time, and nobody must be served before
  serve();
  const auto has_recovered = [&] {
    MemoryReplica& replica = *process_.replica();
    return replica.is_complete() && position() > opened_at &&
           counted_in(replica, run_.point_) == settled_;
  };
  const bool recovered = co_await comes_true(has_recovered, position);
  times.end = thread_.executor.now();
  if (recovered) {
    run_.note_recovery(times, replayed, result_);
  } else {
    result_.judge(harness::Verdict::invalid,
                  fmt::format("the {} does not become complete after its failure", role_name()));
  }
}

Task<> RecoveryRun::keep(Thread& thread) {
  const std::size_t number = node_index(thread);
  std::unique_ptr<harness::PhaseWork>& node = nodes_[number];
  if (number == 0) {
    node = std::make_unique<PrimaryNode>(*this, thread);
    co_await phases_->take_part(thread, *node, true);
  } else {
    node = std::make_unique<CopyNode>(*this, thread);
    co_await phases_->serve(thread, *node, true);
  }
}

}  // namespace perdura::bench
