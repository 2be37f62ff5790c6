#include "bench/kv/kv_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/driver/systems.h"
#include "bench/kv/harness_cost.h"
#include "bench/kv/kv_driver.h"
#include "bench/ycsb/point_workload.h"
#include "platform/base/error.h"
#include "services/kv/partitioned.h"

namespace perdura::bench {
namespace {

// Usually long enough for a sleeping thread to wake up (docs/performance.md).
constexpr Picoseconds kAwakeBeforeDue = Microseconds(50);

Picoseconds in_time(const std::optional<std::uint64_t>& milliseconds) {
  return milliseconds ? Picoseconds(std::chrono::milliseconds(*milliseconds)) : Picoseconds::max();
}

}  // namespace

KvRun::KvRun(Platform& platform, const harness::Point& point, const kv::KvSystem& system)
    : platform_(platform),
      point_(point),
      system_(system),
      servers_(point.roles.nodes_of("server")),
      client_nodes_(point.roles.nodes_of("client")),
      clients_total_(static_cast<std::uint32_t>(point.settings.number("clients"))),
      threads_(static_cast<std::uint32_t>(point.settings.number("server_threads"))),
      workers_total_(servers_ * threads_),
      partition_config_(partition_config(point, system)),
      shared_(servers_),
      clients_(clients_total_),
      histories_(clients_total_),
      harness_costs_(clients_total_),
      warm_ups_(client_nodes_),
      session_metrics_(clients_total_),
      partition_metrics_(workers_total_),
      spaces_(workers_total_),
      worker_problems_(workers_total_) {}

harness::Measurement KvRun::execute() {
  const bool over_time = point_.timeline_interval > Nanoseconds{};
  if (over_time) space_sampler_.emplace(point_.timeline_interval);
  phases_.emplace(platform_, workers_total_ + clients_total_ + (over_time ? 1 : 0));
  if (system_.shares_partition && threads_ > 1) opened_ = platform_.create_barrier(workers_total_);
  if (!platform_.modelled()) {
    stores_open_ = platform_.create_barrier(workers_total_ + clients_total_);
  }
  if (point_.settings.given("steady_slope")) {
    nodes_steady_ = platform_.create_barrier(std::min(clients_total_, client_nodes_));
  }
  start_threads();
  platform_.run();
  return collect();
}

void KvRun::start_threads() {
  for (std::uint32_t index = 0; index < workers_total_; ++index) {
    const NodeId node = point_.roles.node("server", server_of(index));
    if (platform_.local_node(node) == nullptr) continue;
    platform_.start_service(node, static_cast<fabric::Port>(index % threads_),
                            point_.settings.completion("server"),
                            [this, index](Thread& thread) { return serve(thread, index); });
  }
  if (const NodeId node = point_.roles.node("server");
      space_sampler_ && platform_.local_node(node) != nullptr) {
    platform_.start_service(node, static_cast<fabric::Port>(threads_), CompletionMode::event,
                            [this](Thread& thread) { return sample_space(thread); });
  }
  const bool check_history = point_.settings.flag("check_history");
  for (std::uint32_t index = 0; index < clients_total_; ++index) {
    const NodeId node = point_.roles.node("client", index % client_nodes_);
    if (platform_.local_node(node) == nullptr) continue;
    clients_[index] = std::make_unique<KvClient>(point_, index, stop_);
    if (check_history) {
      histories_[index] = std::make_unique<ClientHistory>(point_, index);
    }
  }
  crew_.emplace(static_cast<std::uint32_t>(std::count_if(
      clients_.begin(), clients_.end(), [](const auto& client) { return client != nullptr; })));
  if (nodes_steady_) watch_warm_ups();
  for (std::uint32_t index = 0; index < clients_total_; ++index) {
    if (!clients_[index]) continue;
    platform_.start(point_.roles.node("client", index % client_nodes_),
                    static_cast<fabric::Port>(index / client_nodes_),
                    point_.settings.completion("client"),
                    [this, index](Thread& thread) { return use(thread, index); });
  }
}

void KvRun::watch_warm_ups() {
  for (NodeId node = 0; node < client_nodes_; ++node) {
    std::vector<const KvClient*> clients;
    for (std::uint32_t index = node; index < clients_total_; index += client_nodes_) {
      if (clients_[index]) clients.push_back(clients_[index].get());
    }
    if (!clients.empty()) {
      warm_ups_[node] = std::make_unique<WarmUp>(point_, std::move(clients), stop_);
    }
  }
}

// A server's worker thread. The partition lives until the platform destroys the thread's tasks. The
// task that owns this object is the oldest of them, so the tasks that serve the partition are
// destroyed before it.
class KvRun::Worker final : public harness::PhaseWork {
 public:
  Worker(KvRun& run, Thread& thread, std::uint32_t index)
      : run_(run), thread_(thread), index_(index) {}

  Task<> prepare() override {
    std::exception_ptr problem;
    try {
      if (!run_.opened_ || index_ % run_.threads_ == 0) open();
    } catch (...) {
      problem = std::current_exception();
    }
    if (run_.opened_) co_await run_.opened_->arrive_and_wait();
    if (run_.stores_open_) co_await run_.stores_open_->arrive_and_wait();
    if (problem) std::rethrow_exception(problem);
    if (!partition_ && shared() != nullptr) {
      thread_.executor.spawn(shared()->serve_also(thread_));
    }
  }
  void failed(std::exception_ptr problem) override {
    run_.worker_problems_[index_] = std::move(problem);
  }
  Task<> settle() override {
    if (partition_) co_await partition_->settle();
  }
  Task<> operate() override {
    if (partition_) metrics_before_ = partition_->metrics();
    co_return;
  }
  void collect() override {
    if (!partition_) return;
    run_.partition_metrics_[index_] =
        services::metrics_since(partition_->metrics(), metrics_before_);
    const kv::KvSpace space = partition_->space();
    run_.spaces_[index_] = {space.capacity, space.free};
  }

 private:
  kv::KvPartition*& shared() { return run_.shared_[run_.server_of(index_)]; }
  void open() {
    partition_ = run_.system_.open(thread_, fmt::format("kv-{}", index_ % run_.threads_),
                                   run_.partition_config_);
    if (run_.space_sampler_) sampled_.emplace(*run_.space_sampler_, *partition_);
    thread_.executor.spawn(partition_->serve());
    if (run_.opened_) shared() = partition_.get();
  }

  KvRun& run_;
  Thread& thread_;
  std::uint32_t index_;
  std::unique_ptr<kv::KvPartition> partition_;
  std::vector<double> metrics_before_;
  std::optional<SpaceSampler::Member> sampled_;
};

class KvRun::User final : public harness::PhaseWork {
 public:
  User(KvRun& run, Thread& thread, std::uint32_t index)
      : run_(run), thread_(thread), index_(index), client_(*run.clients_[index]) {}

  Task<> prepare() override {
    // On a model the harness takes no virtual time, so there is no cost to measure.
    std::exception_ptr problem;
    try {
      if (!run_.platform_.modelled()) {
        run_.harness_costs_[index_] = co_await harness_cost(run_.point_);
      }
    } catch (...) {
      problem = std::current_exception();
    }
    // The others wait here for this client, too, whatever happened to it.
    if (run_.stores_open_) co_await run_.stores_open_->arrive_and_wait();
    if (problem) std::rethrow_exception(problem);
    connection_ = co_await kv::PartitionedSession::connect(
        run_.system_, thread_, run_.partitions_of(index_), run_.partition_config_);
    if (run_.histories_[index_]) recorded_ = run_.histories_[index_]->record(*connection_);
    session_ = recorded_ ? recorded_.get() : connection_.get();
    if (const auto& method = run_.partition_config_.put_method) {
      client_.note_method(
          methods::name_in_results(*method, !thread_.endpoint.capabilities().flush));
    }
    co_await client_.load(*session_);
  }
  void failed(std::exception_ptr problem) override { client_.give_up(std::move(problem)); }
  Task<> warm_up() override {
    const NodeId nodes = run_.client_nodes_;
    WarmUp* const until_steady = run_.warm_ups_[index_ % nodes].get();
    const bool watches = until_steady != nullptr && index_ < nodes;
    if (watches) thread_.executor.spawn(until_steady->watch(*run_.nodes_steady_));
    if (session_ != nullptr) co_await client_.run(*session_, run_.stretch(index_, false));
    if (watches) co_await until_steady->ended();
  }
  Task<> operate() override {
    if (session_ == nullptr) co_return;
    const std::vector<double> before = session_->metrics();
    co_await client_.run(*session_, run_.stretch(index_, true));
    run_.session_metrics_[index_] = services::metrics_since(session_->metrics(), before);
  }

 private:
  KvRun& run_;
  Thread& thread_;
  std::uint32_t index_;
  KvClient& client_;
  std::unique_ptr<kv::KvSession> connection_;
  std::unique_ptr<kv::KvSession> recorded_;
  kv::KvSession* session_ = nullptr;  // only one of the two is set
};

class KvRun::Sampler final : public harness::PhaseWork {
 public:
  Sampler(SpaceSampler& sampler, Thread& thread) : sampler_(sampler), thread_(thread) {}

  Task<> operate() override {
    thread_.executor.spawn(sampler_.run());
    co_return;
  }
  void operated() override { sampler_.stop(); }

 private:
  SpaceSampler& sampler_;
  Thread& thread_;
};

Task<> KvRun::serve(Thread& thread, std::uint32_t index) {
  Worker worker(*this, thread, index);
  co_await phases_->serve(thread, worker, index % threads_ == 0);
}

std::vector<fabric::Address> KvRun::partitions_of(std::uint32_t client) const {
  std::vector<fabric::Address> partitions;
  for (NodeId server = 0; server < (system_.spans_servers ? 1 : servers_); ++server) {
    const NodeId node = point_.roles.node("server", server);
    if (system_.shares_partition) {
      partitions.push_back({node, static_cast<fabric::Port>(client % threads_)});
      continue;
    }
    for (std::uint32_t thread = 0; thread < threads_; ++thread) {
      partitions.push_back({node, static_cast<fabric::Port>(thread)});
    }
  }
  return partitions;
}

Task<> KvRun::use(Thread& thread, std::uint32_t index) {
  User user(*this, thread, index);
  co_await phases_->take_part(thread, user, index < client_nodes_);
}

Task<> KvRun::sample_space(Thread& thread) {
  Sampler sampler(*space_sampler_, thread);
  co_await phases_->serve(thread, sampler, false);
}

KvStretch KvRun::stretch(std::uint32_t index, bool measured) {
  const harness::PointSettings& settings = point_.settings;
  KvStretch stretch;
  stretch.measured = measured;
  stretch.operations = ycsb::operations_of_client(
      measured ? workload_of(point_).operation_count : settings.number("warmup"), index,
      clients_total_);
  if (measured) {
    stretch.crew = &*crew_;
    stretch.duration = in_time(settings.number_if_given("duration_ms"));
  } else if (const WarmUp* until_steady = warm_ups_[index % client_nodes_].get()) {
    stretch.over = &until_steady->over();
  } else {
    stretch.duration = in_time(settings.number_if_given("ramp_ms"));
  }
  if (!platform_.modelled()) stretch.awake_before_due = kAwakeBeforeDue;
  return stretch;
}

harness::Measurement KvRun::collect() const {
  harness::Measurement result;
  for (const std::exception_ptr& problem : worker_problems_) {
    if (problem) note(problem, "server", result);
  }
  for (const auto& warm_up : warm_ups_) {
    if (warm_up && !warm_up->problem().empty()) {
      result.judge(harness::Verdict::invalid, warm_up->problem());
    }
  }
  Time first = Time::max();
  Time last = Time::min();
  Time first_due = Time::max();
  Time last_due = Time::min();
  bool have_clients = false;
  std::uint64_t operations_at_work = 0;
  for (const auto& client : clients_) {
    if (!client) continue;
    have_clients = true;
    operations_at_work += client->operations_at_work();
    result.merge(client->measurement());
    if (!client->measured_any()) continue;
    first = std::min(first, client->first_start());
    last = std::max(last, client->last_end());
    first_due = std::min(first_due, client->first_due());
    last_due = std::max(last_due, client->last_due());
  }
  for (const auto& history : histories_) {
    if (!history) continue;
    add_evidence(history->operations(), result);
  }
  if (first < last) result.elapsed = last - first;
  if (first_due < last_due) result.arrivals = last_due - first_due;
  if (have_clients) {
    const std::uint64_t clock = platform_.modelled() ? 0 : measure::clock_of_this_host();
    result.at_work = {crew_->at_work(clock, operations_at_work)};
    result.harness_per_operation = *std::max_element(harness_costs_.begin(), harness_costs_.end());
  }
  if (space_sampler_) {
    result.timeline.interval = point_.timeline_interval;
    result.timeline.begin = first;
    result.timeline.spaces = space_sampler_->samples();
  }
  for (const harness::SpaceUse& space : spaces_) {
    result.space.capacity += space.capacity;
    result.space.free += space.free;
  }
  phases_->costs().add_to(result, point_.roles);
  add_counted(system_.session_metrics, session_metrics_, result);
  add_counted(system_.partition_metrics, partition_metrics_, result);
  return result;
}

}  // namespace perdura::bench
