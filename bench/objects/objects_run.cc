#include "bench/objects/objects_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/driver/systems.h"
#include "bench/objects/objects_driver.h"
#include "bench/ycsb/workload_spec.h"

namespace perdura::bench {

ObjectsRun::ObjectsRun(Platform& platform, const harness::Point& point,
                       const objects::System& system)
    : platform_(platform),
      point_(point),
      system_(system),
      client_nodes_(point.roles.nodes_of("client")),
      shards_(static_cast<std::uint32_t>(point.settings.number("server_threads"))),
      clients_per_shard_(static_cast<std::uint32_t>(point.settings.number("clients_per_shard"))),
      clients_total_(object_clients(point.settings)),
      clients_(clients_total_),
      shard_problems_(shards_) {}

harness::Measurement ObjectsRun::execute() {
  phases_.emplace(platform_, shards_ + clients_total_);
  loaded_ = platform_.create_barrier(clients_total_);
  start_threads();
  platform_.run();
  return collect();
}

void ObjectsRun::start_threads() {
  const NodeId server = point_.roles.node("server");
  for (std::uint32_t shard = 0; shard < shards_; ++shard) {
    if (platform_.local_node(server) == nullptr) break;
    platform_.start_service(server, static_cast<fabric::Port>(shard),
                            point_.settings.completion("server"),
                            [this, shard](Thread& thread) { return serve(thread, shard); });
  }
  std::uint32_t local = 0;
  for (std::uint32_t client = 0; client < clients_total_; ++client) {
    if (platform_.local_node(node_of_client(client)) == nullptr) continue;
    clients_[client] = std::make_unique<ObjectsClient>(point_, client);
    ++local;
  }
  crew_.emplace(local);
  for (std::uint32_t client = 0; client < clients_total_; ++client) {
    if (!clients_[client]) continue;
    platform_.start(node_of_client(client), static_cast<fabric::Port>(client / client_nodes_),
                    point_.settings.completion("client"),
                    [this, client](Thread& thread) { return use(thread, client); });
  }
}

std::uint64_t ObjectsRun::share(std::string_view number, std::uint32_t client) const {
  return ycsb::operations_of_client(point_.settings.number(number), client, clients_total_);
}

// The thread of a shard, which lives until the platform destroys the thread's tasks.
class ObjectsRun::Server final : public harness::PhaseWork {
 public:
  Server(ObjectsRun& run, Thread& thread, std::uint32_t number)
      : run_(run), thread_(thread), number_(number) {}

  Task<> prepare() override {
    shard_ =
        run_.system_.open(thread_, fmt::format("shard-{}", number_), shard_config(run_.point_));
    thread_.executor.spawn(shard_->serve());
    co_return;
  }
  void failed(std::exception_ptr problem) override {
    run_.shard_problems_[number_] = std::move(problem);
  }

 private:
  ObjectsRun& run_;
  Thread& thread_;
  std::uint32_t number_;
  std::unique_ptr<objects::Shard> shard_;
};

class ObjectsRun::User final : public harness::PhaseWork {
 public:
  User(ObjectsRun& run, Thread& thread, std::uint32_t number)
      : run_(run), thread_(thread), number_(number), client_(*run.clients_[number]) {}

  Task<> warm_up() override {
    std::exception_ptr problem;
    try {
      co_await client_.connect(thread_, run_.system_, run_.shard_of(number_));
      co_await client_.load();
    } catch (...) {
      problem = std::current_exception();
    }
    if (problem) client_.note_problem(problem);
    co_await run_.loaded_->arrive_and_wait();
    co_await client_.run(run_.share("warmup", number_), nullptr);
  }
  Task<> operate() override {
    co_await client_.run(run_.share("operations", number_), &*run_.crew_);
  }

 private:
  ObjectsRun& run_;
  Thread& thread_;
  std::uint32_t number_;
  ObjectsClient& client_;
};

Task<> ObjectsRun::serve(Thread& thread, std::uint32_t shard) {
  Server server(*this, thread, shard);
  co_await phases_->serve(thread, server, shard == 0);
}

Task<> ObjectsRun::use(Thread& thread, std::uint32_t client) {
  User user(*this, thread, client);
  co_await phases_->take_part(thread, user, client < client_nodes_);
  clients_[client]->disconnect();
}

harness::Measurement ObjectsRun::collect() const {
  harness::Measurement result;
  for (const std::exception_ptr& problem : shard_problems_) {
    if (problem) note(problem, "server", result);
  }
  Time first = Time::max();
  Time last = Time::min();
  std::uint64_t operations_at_work = 0;
  bool have_clients = false;
  for (const auto& client : clients_) {
    if (!client) continue;
    have_clients = true;
    result.merge(client->measurement());
    first = std::min(first, client->first_start());
    last = std::max(last, client->last_end());
    operations_at_work += client->operations_at_work();
  }
  if (have_clients) {
    const std::uint64_t clock = platform_.modelled() ? 0 : measure::clock_of_this_host();
    result.at_work = {crew_->at_work(clock, operations_at_work)};
    if (first < last) result.elapsed = last - first;
    if (platform_.modelled()) result.harness_per_operation = Picoseconds{};
  }
  phases_->costs().add_to(result, point_.roles);
  return result;
}

}  // namespace perdura::bench
