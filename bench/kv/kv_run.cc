#include "bench/kv/kv_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/kv/kv_driver.h"
#include "platform/error.h"
#include "systems/partitioned.h"

namespace perdura::bench {
namespace {

constexpr NodeId kServer = 0;

}  // namespace

KvRun::KvRun(Platform& platform, const harness::Point& point, const systems::KvSystem& system)
    : platform_(platform),
      point_(point),
      system_(system),
      clients_total_(static_cast<std::uint32_t>(point.settings.clients)),
      workers_total_(static_cast<std::uint32_t>(point.settings.server_threads)),
      clients_(clients_total_),
      histories_(clients_total_),
      costs_(platform.node_count()),
      worker_problems_(workers_total_) {
  partition_config_ = systems::partition_config(store_config(point), workers_total_);
  partition_config_.put_method = put_method(point, system);
}

harness::Measurement KvRun::execute() {
  const bool over_time = point_.timeline_interval > Nanoseconds{};
  if (over_time) space_sampler_.emplace(point_.timeline_interval);
  barrier_ = platform_.create_barrier(workers_total_ + clients_total_ + (over_time ? 1 : 0));
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
    platform_.start(node, static_cast<fabric::Port>(index / point_.client_nodes),
                    point_.settings.client_completion,
                    [this, index](Thread& thread) { return use(thread, index); });
  }
}

// The partition stays until the platform destroys the thread's tasks, of which this one is the
// oldest: the tasks that serve it go first.
Task<> KvRun::serve(Thread& thread, std::uint32_t index) {
  std::unique_ptr<systems::KvPartition> partition;
  std::optional<SpaceSampler::Member> sampled;
  try {
    partition = system_.open(thread, fmt::format("kv-{}", index), partition_config_);
    if (space_sampler_) sampled.emplace(*space_sampler_, *partition);
    thread.executor.spawn(partition->serve());
  } catch (...) {
    worker_problems_[index] = std::current_exception();
  }
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
    co_await wait_for_all();  // counted
  }
  WaitList forever;
  co_await wait(forever);
}

Task<> KvRun::use(Thread& thread, std::uint32_t index) {
  KvClient& client = *clients_[index];
  const bool first_of_node = index < point_.client_nodes;
  const std::uint64_t warmup =
      workload::operations_of_client(point_.settings.warmup, index, clients_total_);
  const std::uint64_t operations =
      workload::operations_of_client(point_.workload.operation_count, index, clients_total_);

  std::unique_ptr<systems::KvSession> connection;
  std::unique_ptr<systems::KvSession> recorded;
  systems::KvSession* session = nullptr;  // one of the two
  std::exception_ptr problem;
  try {
    connection = co_await systems::PartitionedSession::connect(system_, thread, kServer,
                                                               workers_total_, partition_config_);
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
  if (session) co_await client.run(*session, warmup, false);
  co_await wait_for_all();  // warmed up
  co_await wait_for_all();  // settled
  for (const Interval interval : {Interval::empty, Interval::measured}) {
    if (first_of_node) costs_.begin(thread.node);
    co_await wait_for_all();  // counted
    if (session && interval == Interval::measured) {
      co_await client.run(*session, operations, true);
    }
    co_await wait_for_all();  // operations done
    co_await wait_for_all();  // settled
    if (first_of_node) costs_.end(thread.node, interval);
    co_await wait_for_all();  // counted
  }
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
  Time first = Time::max();
  Time last = Time::min();
  for (const auto& client : clients_) {
    if (!client) continue;
    result.merge(client->measurement());
    if (!client->measured_any()) continue;
    first = std::min(first, client->first_start());
    last = std::max(last, client->last_end());
  }
  for (const auto& history : histories_) {
    if (!history) continue;
    const auto operations = history->operations();
    result.history.insert(result.history.end(), operations.begin(), operations.end());
  }
  if (first < last) result.elapsed = last - first;
  if (space_sampler_) {
    result.timeline.interval = point_.timeline_interval;
    result.timeline.begin = first;
    result.timeline.spaces = space_sampler_->samples();
  }
  costs_.add_to(result, kServer);
  return result;
}

}  // namespace perdura::bench
