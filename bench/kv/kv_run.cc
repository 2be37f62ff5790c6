#include "bench/kv/kv_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/kv/harness_cost.h"
#include "bench/kv/kv_driver.h"
#include "platform/base/error.h"
#include "systems/partitioned.h"

namespace perdura::bench {
namespace {

constexpr NodeId kServer = 0;

// What it takes to wake up a sleeping thread, as a rule (docs/performance.md).
constexpr Picoseconds kAwakeBeforeDue = Microseconds(50);

Picoseconds in_time(const std::optional<std::uint64_t>& milliseconds) {
  return milliseconds ? Picoseconds(std::chrono::milliseconds(*milliseconds)) : Picoseconds::max();
}

}  // namespace

KvRun::KvRun(Platform& platform, const harness::Point& point, const systems::KvSystem& system)
    : platform_(platform),
      point_(point),
      system_(system),
      clients_total_(static_cast<std::uint32_t>(point.settings.clients)),
      workers_total_(static_cast<std::uint32_t>(point.settings.server_threads)),
      partitions_(partitions(point, system)),
      partition_config_(partition_config(point, system)),
      clients_(clients_total_),
      histories_(clients_total_),
      harness_costs_(clients_total_),
      warm_ups_(point.client_nodes),
      costs_(platform.node_count(), platform.modelled()),
      spaces_(workers_total_),
      worker_problems_(workers_total_) {}

harness::Measurement KvRun::execute() {
  const bool over_time = point_.timeline_interval > Nanoseconds{};
  if (over_time) space_sampler_.emplace(point_.timeline_interval);
  barrier_ = platform_.create_barrier(workers_total_ + clients_total_ + (over_time ? 1 : 0));
  if (partitions_ < workers_total_) opened_ = platform_.create_barrier(workers_total_);
  if (point_.settings.steady_slope) {
    nodes_steady_ = platform_.create_barrier(std::min(clients_total_, point_.client_nodes));
  }
  start_threads();
  platform_.run();
  return collect();
}

void KvRun::start_threads() {
  if (platform_.local_node(kServer) != nullptr) {
    for (std::uint32_t index = 0; index < workers_total_; ++index) {
      platform_.start_service(kServer, static_cast<fabric::Port>(index),
                              point_.settings.server_completion,
                              [this, index](Thread& thread) { return serve(thread, index); });
    }
    if (space_sampler_) {
      platform_.start_service(kServer, static_cast<fabric::Port>(workers_total_),
                              CompletionMode::event,
                              [this](Thread& thread) { return sample_space(thread); });
    }
  }
  for (std::uint32_t index = 0; index < clients_total_; ++index) {
    const NodeId node = 1 + index % point_.client_nodes;
    if (platform_.local_node(node) == nullptr) continue;
    clients_[index] = std::make_unique<KvClient>(point_, index, stop_);
    if (point_.settings.check_history) {
      histories_[index] = std::make_unique<ClientHistory>(point_, index);
    }
  }
  crew_.emplace(static_cast<std::uint32_t>(std::count_if(
      clients_.begin(), clients_.end(), [](const auto& client) { return client != nullptr; })));
  if (nodes_steady_) watch_warm_ups();
  for (std::uint32_t index = 0; index < clients_total_; ++index) {
    if (!clients_[index]) continue;
    platform_.start(1 + index % point_.client_nodes,
                    static_cast<fabric::Port>(index / point_.client_nodes),
                    point_.settings.client_completion,
                    [this, index](Thread& thread) { return use(thread, index); });
  }
}

void KvRun::watch_warm_ups() {
  for (NodeId node = 0; node < point_.client_nodes; ++node) {
    std::vector<const KvClient*> clients;
    for (std::uint32_t index = node; index < clients_total_; index += point_.client_nodes) {
      if (clients_[index]) clients.push_back(clients_[index].get());
    }
    if (!clients.empty()) {
      warm_ups_[node] = std::make_unique<WarmUp>(point_, std::move(clients), stop_);
    }
  }
}

// The partition stays until the platform destroys the thread's tasks, of which this one is the
// oldest: the tasks that serve it go first.
Task<> KvRun::serve(Thread& thread, std::uint32_t index) {
  std::unique_ptr<systems::KvPartition> partition;
  std::optional<SpaceSampler::Member> sampled;
  try {
    if (index < partitions_) {
      partition = system_.open(thread, fmt::format("kv-{}", index), partition_config_);
      if (space_sampler_) sampled.emplace(*space_sampler_, *partition);
      thread.executor.spawn(partition->serve());
      if (opened_) shared_ = partition.get();
    }
  } catch (...) {
    worker_problems_[index] = std::current_exception();
  }
  if (opened_) co_await opened_->arrive_and_wait();
  if (!partition && shared_ != nullptr) thread.executor.spawn(shared_->serve_also(thread));
  co_await wait_for_all();  // loaded
  co_await wait_for_all();  // warmed up
  if (partition) co_await partition->settle();
  co_await wait_for_all();  // settled
  for (const Interval interval : {Interval::empty, Interval::measured}) {
    if (index == 0) costs_.begin(thread.node);
    co_await wait_for_all();  // counted
    co_await wait_for_all();  // operations done
    if (partition) co_await partition->settle();
    co_await wait_for_all();  // settled
    if (index == 0) costs_.end(thread.node, interval);
    if (partition) {
      const systems::KvSpace space = partition->space();
      spaces_[index] = {space.capacity, space.free};
    }
    co_await wait_for_all();  // counted
  }
  WaitList forever;
  co_await wait(forever);
}

Task<> KvRun::use(Thread& thread, std::uint32_t index) {
  KvClient& client = *clients_[index];
  const bool first_of_node = index < point_.client_nodes;
  std::unique_ptr<systems::KvSession> connection;
  std::unique_ptr<systems::KvSession> recorded;
  systems::KvSession* session = nullptr;  // one of the two
  std::exception_ptr problem;
  try {
    // Virtual time does not pass while the harness works.
    if (!platform_.modelled()) harness_costs_[index] = co_await harness_cost(point_);
    const auto first = static_cast<fabric::Port>(index % (workers_total_ / partitions_));
    connection = co_await systems::PartitionedSession::connect(system_, thread, {kServer, first},
                                                               partitions_, partition_config_);
    if (histories_[index]) recorded = histories_[index]->record(*connection);
    session = recorded ? recorded.get() : connection.get();
    if (const auto& method = partition_config_.put_method) {
      client.note_method(
          persistence::name_in_results(*method, !thread.endpoint.capabilities().flush));
    }
    co_await client.load(*session);
  } catch (...) {
    problem = std::current_exception();
  }
  if (problem) client.give_up(problem);
  co_await wait_for_all();  // loaded
  co_await warm_up(thread, index, session);
  co_await wait_for_all();  // warmed up
  co_await wait_for_all();  // settled
  for (const Interval interval : {Interval::empty, Interval::measured}) {
    if (first_of_node) costs_.begin(thread.node);
    co_await wait_for_all();  // counted
    if (session && interval == Interval::measured) {
      co_await client.run(*session, stretch(index, true));
    }
    co_await wait_for_all();  // operations done
    co_await wait_for_all();  // settled
    if (first_of_node) costs_.end(thread.node, interval);
    co_await wait_for_all();  // counted
  }
}

Task<> KvRun::warm_up(Thread& thread, std::uint32_t index, systems::KvSession* session) {
  WarmUp* const until_steady = warm_ups_[index % point_.client_nodes].get();
  const bool watches = until_steady != nullptr && index < point_.client_nodes;
  if (watches) thread.executor.spawn(until_steady->watch(*nodes_steady_));
  if (session != nullptr) co_await clients_[index]->run(*session, stretch(index, false));
  if (watches) co_await until_steady->ended();
}

KvStretch KvRun::stretch(std::uint32_t index, bool measured) {
  const harness::PointSettings& settings = point_.settings;
  KvStretch stretch;
  stretch.measured = measured;
  stretch.operations = workload::operations_of_client(
      measured ? point_.workload.operation_count : settings.warmup, index, clients_total_);
  if (measured) {
    stretch.crew = &*crew_;
    stretch.duration = in_time(settings.duration_ms);
  } else if (const WarmUp* until_steady = warm_ups_[index % point_.client_nodes].get()) {
    stretch.over = &until_steady->over();
  } else {
    stretch.duration = in_time(settings.ramp_ms);
  }
  if (!platform_.modelled()) stretch.awake_before_due = kAwakeBeforeDue;
  return stretch;
}

Task<> KvRun::sample_space(Thread& thread) {
  co_await wait_for_all();  // loaded
  co_await wait_for_all();  // warmed up
  co_await wait_for_all();  // settled
  for (const Interval interval : {Interval::empty, Interval::measured}) {
    co_await wait_for_all();  // counted
    if (interval == Interval::measured) thread.executor.spawn(space_sampler_->run());
    co_await wait_for_all();  // operations done
    if (interval == Interval::measured) space_sampler_->stop();
    co_await wait_for_all();  // settled
    co_await wait_for_all();  // counted
  }
  WaitList forever;
  co_await wait(forever);
}

harness::Measurement KvRun::collect() const {
  harness::Measurement result;
  for (const std::exception_ptr& problem : worker_problems_) {
    if (!problem) continue;
    try {
      std::rethrow_exception(problem);
    } catch (const UsageError& error) {
      result.usage_error = error.what();
    } catch (const std::exception& error) {
      result.judge(harness::Verdict::failed, fmt::format("server: {}", error.what()));
    }
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
    const auto operations = history->operations();
    result.history.insert(result.history.end(), operations.begin(), operations.end());
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
  costs_.add_to(result, kServer);
  return result;
}

}  // namespace perdura::bench
