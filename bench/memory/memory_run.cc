#include "bench/memory/memory_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bench/driver/systems.h"
#include "bench/memory/application_work.h"
#include "bench/memory/memory_driver.h"
#include "bench/memory/sync_points.h"
#include "bench/ycsb/workload_spec.h"
#include "harness/run/interrupt.h"
#include "platform/base/error.h"

namespace perdura::bench {

using services::MappedMemory;
using services::MemoryRange;
using services::MemoryReplica;
using services::MemoryRole;

MemoryRun::MemoryRun(Platform& platform, const harness::Point& point,
                     const services::MemorySystem& system)
    : platform_(platform),
      point_(point),
      system_(system),
      config_(memory_config(point, system)),
      workers_(system.workers(config_)),
      replicas_(config_.nodes.size()),
      applications_(config_.threads),
      first_starts_(config_.threads, Time::max()),
      last_ends_(config_.threads, Time::min()),
      operations_at_work_(config_.threads),
      session_metrics_(config_.threads),
      replica_metrics_(config_.nodes.size()),
      contents_(config_.nodes.size()) {}

harness::Measurement MemoryRun::execute() {
  const auto copies = static_cast<std::uint32_t>(config_.nodes.size() - 1);
  const std::uint32_t threads = config_.threads + copies * workers_;
  phases_.emplace(platform_, threads);
  opened_ = platform_.create_barrier(threads);
  served_ = platform_.create_barrier(threads);
  start_threads();
  platform_.run();
  harness::Measurement result;
  for (const harness::Measurement& of_node : contents_) result.merge(of_node);
  std::uint64_t operations_at_work = 0;
  for (std::uint32_t i = 0; i < config_.threads; ++i) {
    result.merge(applications_[i]);
    operations_at_work += operations_at_work_[i];
  }
  if (platform_.local_node(config_.nodes.front()) != nullptr) {
    const std::uint64_t clock = platform_.modelled() ? 0 : measure::clock_of_this_host();
    result.at_work = {crew_->at_work(clock, operations_at_work)};
    const Time first = *std::min_element(first_starts_.begin(), first_starts_.end());
    const Time last = *std::max_element(last_ends_.begin(), last_ends_.end());
    if (first < last) result.elapsed = last - first;
    if (platform_.modelled()) result.harness_per_operation = Picoseconds{};
  }
  phases_->costs().add_to(result, point_.roles);
  add_counted(system_.session_metrics, session_metrics_, result);
  add_counted(system_.replica_metrics, replica_metrics_, result);
  return result;
}

void MemoryRun::start_threads() {
  const harness::PointSettings& settings = point_.settings;
  for (const NodeId node : config_.nodes) {
    if (is_primary(node) || platform_.local_node(node) == nullptr) continue;
    const CompletionMode mode = settings.completion(point_.roles.assignment_of(node).role.name);
    for (std::uint32_t worker = 0; worker < workers_; ++worker) {
      platform_.start_service(node, static_cast<fabric::Port>(worker), mode,
                              [this](Thread& thread) { return serve(thread); });
    }
  }
  const NodeId primary = config_.nodes.front();
  if (platform_.local_node(primary) == nullptr) return;
  crew_.emplace(config_.threads);
  for (std::uint32_t index = 0; index < config_.threads; ++index) {
    platform_.start(primary, static_cast<fabric::Port>(index), settings.completion("primary"),
                    [this, index](Thread& thread) { return use(thread, index); });
  }
}

std::size_t MemoryRun::node_index(Thread& thread) const {
  return thread.node.id() - config_.nodes.front();
}

void MemoryRun::open(Thread& thread) {
  constexpr std::array kRoles{MemoryRole::primary, MemoryRole::mirror, MemoryRole::backup};
  const std::size_t number = node_index(thread);
  const MemoryRole role = kRoles[std::min(number, kRoles.size() - 1)];
  replicas_[number] = system_.open(thread, "memory", config_, role);
}

void MemoryRun::note_contents(Thread& thread) {
  const std::size_t number = node_index(thread);
  contents_[number].evidence.push_back(contents_of(*replicas_[number], config_.size));
}

// A thread of the application.
class MemoryRun::Application final : public harness::PhaseWork {
 public:
  Application(MemoryRun& run, Thread& thread, std::uint32_t index)
      : run_(run),
        thread_(thread),
        index_(index),
        result_(run.applications_[index]),
        work_(work_of(run.point_, run.config_.threads, index)) {
    result_.kinds[work_->kind()];  // so that nothing is allocated while measuring
  }

  Task<> prepare() override {
    std::exception_ptr problem;
    try {
      if (index_ == 0) run_.open(thread_);
    } catch (...) {
      problem = std::current_exception();
    }
    co_await run_.opened_->arrive_and_wait();
    co_await run_.served_->arrive_and_wait();
    if (problem) std::rethrow_exception(problem);
    const auto replica = run_.replicas_.front();
    if (replica) memory_ = co_await replica->map(thread_);
    if (run_.config_.method) {
      result_.method =
          methods::name_in_results(*run_.config_.method, !thread_.endpoint.capabilities().flush);
    }
  }
  void failed(std::exception_ptr problem) override {
    note(std::move(problem), "the application", result_);
  }
  Task<> warm_up() override { co_await work_often("warmup", nullptr); }
  Task<> operate() override {
    if (!memory_) co_return;
    const std::vector<double> before = memory_->metrics();
    co_await work_often("operations", &*run_.crew_);
    run_.session_metrics_[index_] = services::metrics_since(memory_->metrics(), before);
  }
  Task<> settle() override {
    if (!memory_) co_return;
    co_await memory_->settle();
    if (index_ > 0) co_return;
    const Bytes counter = counter_of(run_.point_);
    memory_->region().store(counter, ++settled_);
    const auto synced = co_await memory_->sync(MemoryRange{counter, kWord});
    check(synced);
    co_await memory_->settle();
  }
  void collect() override {
    if (index_ == 0 && memory_) run_.note_contents(thread_);
  }

 private:
  bool check(const tl::expected<void, services::SyncError>& synced) {
    if (synced) return true;
    result_.judge(harness::Verdict::failed,
                  fmt::format("a sync ended with '{}'", to_string(synced.error())));
    return false;
  }
  Task<> work_often(std::string_view number, Crew* crew);

  MemoryRun& run_;
  Thread& thread_;
  std::uint32_t index_;
  harness::Measurement& result_;
  std::unique_ptr<ApplicationWork> work_;
  std::uint64_t settled_ = 0;
  std::unique_ptr<MappedMemory> memory_;
};

Task<> MemoryRun::Application::work_often(std::string_view number, Crew* crew) {
  harness::KindMeasurement& kind = result_.kinds[work_->kind()];
  Executor& executor = Executor::current();
  const std::uint64_t operations =
      memory_ ? ycsb::operations_of_client(run_.point_.settings.number(number), index_,
                                           run_.config_.threads)
              : 0;
  Time end = executor.now();
  if (crew != nullptr) crew->begin(end);
  for (std::uint64_t i = 0; i < operations; ++i) {
    if (harness::interrupted()) [[unlikely]] {
      result_.interrupted = true;
      break;
    }
    work_->prepare(memory_->region());
    // A sync that waits for nobody does not let simulated time pass for others.
    co_await yield();
    const Time start = executor.begin();
    const auto synced = co_await work_->perform(*memory_);
    end = executor.now();
    if (crew != nullptr) {
      ++kind.operations;
      run_.first_starts_[index_] = std::min(run_.first_starts_[index_], start);
      run_.last_ends_[index_] = end;
    }
    if (!check(synced)) {
      if (crew != nullptr) ++kind.errors;
      break;
    }
    if (crew == nullptr) continue;
    kind.latency.record(
        static_cast<std::uint64_t>(std::chrono::duration_cast<Nanoseconds>(end - start).count()));
    if (crew->were_at_work(end)) ++run_.operations_at_work_[index_];
  }
  if (crew != nullptr) crew->end(end);
}

// A thread of a node that has a copy.
class MemoryRun::Copy final : public harness::PhaseWork {
 public:
  Copy(MemoryRun& run, Thread& thread) : run_(run), thread_(thread) {}

  Task<> prepare() override {
    std::exception_ptr problem;
    try {
      if (is_first()) run_.open(thread_);
    } catch (...) {
      problem = std::current_exception();
    }
    co_await run_.opened_->arrive_and_wait();
    replica_ = run_.replicas_[run_.node_index(thread_)];
    if (replica_) thread_.executor.spawn(replica_->serve(thread_));
    co_await run_.served_->arrive_and_wait();
    if (problem) std::rethrow_exception(problem);
  }
  void failed(std::exception_ptr problem) override {
    note(std::move(problem), role_name(), run_.contents_[run_.node_index(thread_)]);
  }
  Task<> settle() override {
    constexpr Picoseconds kLook = Microseconds(20);
    constexpr Picoseconds kPatience = std::chrono::seconds(20);
    if (!is_first() || !replica_) co_return;
    ++settled_;
    const Time since = Executor::current().now();
    while (counted_in(*replica_, run_.point_) != settled_) {
      if (Executor::current().now() - since > kPatience) {
        run_.contents_[run_.node_index(thread_)].judge(
            harness::Verdict::invalid,
            fmt::format("the {} does not get what has been synced", role_name()));
        co_return;
      }
      co_await sleep_for(kLook);
    }
  }
  Task<> operate() override {
    if (is_first() && replica_) metrics_before_ = replica_->metrics();
    co_return;
  }
  void collect() override {
    if (!is_first() || !replica_) return;
    run_.replica_metrics_[run_.node_index(thread_)] =
        services::metrics_since(replica_->metrics(), metrics_before_);
    run_.note_contents(thread_);
  }

 private:
  bool is_first() const { return thread_.endpoint.address().port == 0; }
  const std::string& role_name() const {
    return run_.point_.roles.assignment_of(thread_.node.id()).role.name;
  }

  MemoryRun& run_;
  Thread& thread_;
  std::shared_ptr<MemoryReplica> replica_;
  std::uint64_t settled_ = 0;
  std::vector<double> metrics_before_;
};

Task<> MemoryRun::use(Thread& thread, std::uint32_t index) {
  Application application(*this, thread, index);
  co_await phases_->take_part(thread, application, index == 0);
}

Task<> MemoryRun::serve(Thread& thread) {
  Copy copy(*this, thread);
  co_await phases_->serve(thread, copy, thread.endpoint.address().port == 0);
}

}  // namespace perdura::bench
