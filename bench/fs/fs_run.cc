#include "bench/fs/fs_run.h"
#include "bench/driver/mounted_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "bench/driver/server.h"
#include "bench/driver/systems.h"
#include "bench/fs/fs_application.h"
#include "harness/run/interrupt.h"
#include "methods/chooser.h"
#include "platform/base/error.h"

namespace perdura::bench {

using harness::Verdict;

fs::FsConfig fs_config(const harness::Point& point, const fs::FsSystem& system) {
  fs::FsConfig config;
  config.size = point.settings.number("size");
  config.threads = static_cast<std::uint32_t>(point.settings.number("threads"));
  config.parameters = point.parameters;
  config.servers = servers_of(point);
  if (system.cluster != nullptr && point.settings.text("persistence") == "correct") {
    config.data_method = methods::choose(methods::configurations(stated_server(point.settings)),
                                         *system.cluster->update, {});
    if (system.cluster->mirror_update) {
      config.mirror_method = methods::choose(methods::configurations(stated_server(point.settings)),
                                             *system.cluster->mirror_update, {});
    }
  }
  return config;
}

std::vector<NodeId> application_nodes(const harness::Point& point) {
  const std::string_view role =
      point.roles.nodes_of("application") > 0 ? "application" : to_string(fs::FsRole::store);
  std::vector<NodeId> nodes(
      std::min<std::uint64_t>(point.roles.nodes_of(role), point.settings.number("threads")));
  for (NodeId index = 0; index < nodes.size(); ++index)
    nodes[index] = point.roles.node(role, index);
  return nodes;
}

FsRun::FsRun(Platform& platform, const harness::Point& point, const fs::FsSystem* system,
             const services::MemorySystem* memory)
    : platform_(platform),
      point_(point),
      system_(system),
      threads_(static_cast<std::uint32_t>(point.settings.number("threads"))),
      think_(Microseconds(point.settings.number("think_us"))),
      workload_(create_file_workload(point)),
      nodes_(application_nodes(point)),
      mounts_(nodes_.size()),
      applications_(threads_),
      first_starts_(threads_, Time::max()),
      last_ends_(threads_, Time::min()),
      operations_at_work_(threads_),
      session_metrics_(threads_),
      copies_(point.roles.node_count()),
      server_metrics_(point.roles.node_count()) {
  if (system != nullptr && system->cluster != nullptr) {
    servers_.emplace(platform, *system, fs_config(point, *system));
  }
  if (memory == nullptr) return;
  services::MemoryConfig config;
  config.size = round_up(point.settings.number("size"), kMediaLine);
  config.threads = threads_;
  config.nodes.resize(point.roles.node_count());
  std::iota(config.nodes.begin(), config.nodes.end(), NodeId{0});
  config.completion = point.settings.completion("application");
  replication_.emplace(*memory, std::move(config), threads_);
}

harness::Measurement FsRun::execute() {
  std::uint32_t all = threads_;
  if (replication_) all += (point_.roles.node_count() - 1) * replication_->workers();
  if (servers_) all += servers_->threads();
  if (replication_ || servers_) {
    opened_ = platform_.create_barrier(all);
    served_ = platform_.create_barrier(all);
  }
  if (servers_) left_ = platform_.create_barrier(all);
  phases_.emplace(platform_, all);
  barrier_ = platform_.create_barrier(threads_);
  check_processes();
  start_copies();
  start_servers();
  if (has_application()) start_application();
  platform_.run();
  return collect();
}

bool FsRun::has_application() const { return platform_.local_node(nodes_.front()) != nullptr; }

void FsRun::start_application() {
  if (system_ == nullptr) folder_.emplace(path_of(point_));
  crew_.emplace(threads_ * static_cast<std::uint32_t>(point_.settings.number("queue_depth")));
  for (std::uint32_t index = 0; index < threads_; ++index) {
    const NodeId node = nodes_[index % nodes_.size()];
    const bool is_server = point_.roles.nodes_of("application") == 0;
    const std::uint32_t port = index / nodes_.size() + (is_server ? servers_->workers(node) : 0);
    platform_.start(node, static_cast<fabric::Port>(port),
                    point_.settings.completion("application"),
                    [this, index](Thread& thread) { return use(thread, index); });
  }
}

harness::Measurement FsRun::collect() const {
  harness::Measurement result;
  std::uint64_t operations_at_work = 0;
  for (std::uint32_t i = 0; i < threads_; ++i) {
    result.merge(applications_[i]);
    operations_at_work += operations_at_work_[i];
  }
  if (crew_) {
    const std::uint64_t clock = platform_.modelled() ? 0 : measure::clock_of_this_host();
    result.at_work = {crew_->at_work(clock, operations_at_work)};
  }
  const Time first = *std::min_element(first_starts_.begin(), first_starts_.end());
  const Time last = *std::max_element(last_ends_.begin(), last_ends_.end());
  if (first < last) result.elapsed = last - first;
  if (platform_.modelled()) result.harness_per_operation = Picoseconds{};
  harness::Measurement costs;
  phases_->costs().add_to(costs, point_.roles);
  for (const harness::Measurement& of_copy : copies_) result.merge(of_copy);
  if (system_ == nullptr) {
    // The writes of a kernel's file system to memory are not known.
    constexpr std::string_view kCpu = "application_cpu_us_per_op";
    result.declared[std::string(kCpu)] += costs.declared.find(kCpu)->second;
    if (costs.noise) result.note_noise(*costs.noise);
  } else {
    result.merge(costs);
    add_counted(system_->session_metrics, session_metrics_, result);
    if (servers_) add_counted(system_->cluster->server_metrics, server_metrics_, result);
  }
  return result;
}

// A thread of a node that holds a copy of the region.
class FsRun::Copy final : public harness::PhaseWork {
 public:
  Copy(FsRun& run, Thread& thread) : run_(run), thread_(thread) {}

  Task<> prepare() override {
    std::exception_ptr problem;
    try {
      if (is_first()) run_.replication_->open(thread_);
    } catch (...) {
      problem = std::current_exception();
      run_.stop_ = true;
    }
    co_await run_.opened_->arrive_and_wait();
    if (!run_.stop_) thread_.executor.spawn(run_.replication_->serve(thread_));
    co_await run_.served_->arrive_and_wait();
    if (problem) std::rethrow_exception(problem);
  }
  void failed(std::exception_ptr problem) override {
    note(std::move(problem), "a copy", run_.copies_[thread_.node.id()]);
  }
  Task<> settle() override {
    constexpr Picoseconds kLook = Microseconds(20);
    constexpr Picoseconds kPatience = std::chrono::seconds(20);
    const Time since = Executor::current().now();
    while (is_first() && !run_.stop_ && !run_.replication_->has_all(thread_.node.id())) {
      if (Executor::current().now() - since > kPatience) {
        run_.copies_[thread_.node.id()].judge(Verdict::invalid,
                                              "a copy does not get what has been synced");
        co_return;
      }
      co_await sleep_for(kLook);
    }
  }

 private:
  bool is_first() const { return thread_.endpoint.address().port == 0; }

  FsRun& run_;
  Thread& thread_;
};

// A thread of a server.
class FsRun::Server final : public harness::PhaseWork {
 public:
  Server(FsRun& run, Thread& thread) : run_(run), thread_(thread) {}

  Task<> prepare() override {
    std::exception_ptr problem;
    try {
      if (is_first()) co_await run_.servers_->open(thread_);
    } catch (...) {
      problem = std::current_exception();
      run_.stop_ = true;
    }
    co_await run_.opened_->arrive_and_wait();
    if (!run_.stop_) thread_.executor.spawn(run_.servers_->serve(thread_));
    co_await run_.served_->arrive_and_wait();
    if (problem) std::rethrow_exception(problem);
  }
  void failed(std::exception_ptr problem) override {
    run_.stop_ = true;
    note(std::move(problem), "a server", result());
  }
  Task<> operate() override {
    if (is_first() && !run_.stop_) before_ = part().metrics();
    co_return;
  }
  void collect() override {
    if (!is_first() || run_.stop_) return;
    run_.server_metrics_[thread_.node.id()] = services::metrics_since(part().metrics(), before_);
  }
  // After the phases, when nobody has it mounted any more.
  Task<> audit() {
    co_await run_.left_->arrive_and_wait();
    if (is_first() && !run_.stop_ && !harness::interrupted()) {
      const std::string contradiction = co_await part().audit();
      if (!contradiction.empty()) result().judge(Verdict::invalid, contradiction);
    }
    co_await run_.left_->arrive_and_wait();
  }
  bool is_first() const { return thread_.endpoint.address().port == 0; }

 private:
  fs::FsServer& part() { return run_.servers_->part(thread_.node.id()); }
  harness::Measurement& result() { return run_.copies_[thread_.node.id()]; }

  FsRun& run_;
  Thread& thread_;
  std::vector<double> before_;
};

// The threads of a workload share its state, and so do copies and those who sync them. Servers share nothing with a
// client, so they may be other processes.
void FsRun::check_processes() const {
  if (!replication_ && (!servers_ || nodes_.size() == 1)) return;
  for (NodeId node = 0; node < point_.roles.node_count(); ++node) {
    if (platform_.local_node(node) != nullptr) continue;
    if (replication_) {
      throw UsageError("a replicated file system is measured in one process; leave out mpirun");
    }
    throw UsageError(
        fmt::format("an application on {} nodes is one process; lower application_nodes to 1, or "
                    "leave out mpirun",
                    nodes_.size()));
  }
}

void FsRun::start_servers() {
  if (!servers_) return;
  for (const fs::FsServerNode& server : servers_->nodes()) {
    if (platform_.local_node(server.node) == nullptr) continue;
    const CompletionMode mode = point_.settings.completion(to_string(server.role));
    for (std::uint32_t worker = 0; worker < servers_->workers(server.node); ++worker) {
      platform_.start_service(server.node, static_cast<fabric::Port>(worker), mode,
                              [this](Thread& thread) { return serve_part(thread); });
    }
  }
}

Task<> FsRun::serve_part(Thread& thread) {
  Server server(*this, thread);
  co_await phases_->take_part(thread, server, server.is_first());
  co_await server.audit();
  WaitList forever;
  co_await wait(forever);
}

void FsRun::start_copies() {
  if (!replication_) return;
  for (NodeId node = 1; node < point_.roles.node_count(); ++node) {
    const CompletionMode mode =
        point_.settings.completion(point_.roles.assignment_of(node).role.name);
    for (std::uint32_t worker = 0; worker < replication_->workers(); ++worker) {
      platform_.start_service(node, static_cast<fabric::Port>(worker), mode,
                              [this](Thread& thread) { return serve(thread); });
    }
  }
}

Task<> FsRun::serve(Thread& thread) {
  Copy copy(*this, thread);
  co_await phases_->serve(thread, copy, thread.endpoint.address().port == 0);
}

Task<> FsRun::use(Thread& thread, std::uint32_t index) {
  Application application(*this, thread, index);
  // On a server's node one of its own threads measures the costs.
  const bool takes_costs = is_first_on_node(index) && point_.roles.nodes_of("application") > 0;
  co_await phases_->take_part(thread, application, takes_costs);
  co_await application.leave();
}

}  // namespace perdura::bench
