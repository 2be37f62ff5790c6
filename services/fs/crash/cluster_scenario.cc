#include "services/fs/crash/cluster_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "platform/base/error.h"
#include "services/judge.h"

namespace perdura::fs {

namespace {

using services::ServerFailure;
using Kind = Operation::Kind;

constexpr std::uint32_t kOnStore = 1;  // the client on the node of a store
// A request of a client that has died, or has lost its connection, takes effect by then. The
// inspector reads the tree by many operations, so nothing may change meanwhile.
constexpr Picoseconds kUntilSettled = std::chrono::milliseconds(1);

class ClusterScenario final : public SessionScenario {
 public:
  ClusterScenario(const FsSystem& system, FsConfig given, FsCrashPlan plan_given)
      : SessionScenario(system, std::move(given), std::move(plan_given)),
        cluster_(*system.cluster),
        nodes_(config().servers.size()) {
    // A server may learn of the end of a client after the client has come back.
    config().threads = 2 * (clients() + 1);
    system.check(config());
    for (NodeId node = 0; node < servers(); ++node) {
      workers_ = std::max(workers_, cluster_.workers(config(), node));
    }
  }

  NodeId servers() const override { return static_cast<NodeId>(nodes_.size()); }
  std::uint32_t workers() const override { return workers_; }
  NodeId node_of_client(std::uint32_t number) const override {
    return number == kOnStore ? store() : servers() + number;
  }
  // Each client opens the files that it shares, and unmounts at its end.
  std::uint64_t planned_calls(std::size_t failures) const override {
    const std::uint64_t opening = plan().shared > 0 ? kMostCallsOfOpening : 0;
    return SessionScenario::planned_calls(failures) + (clients() - 1) * opening + clients();
  }

  // Each page that fills the stores goes over the network.
  Picoseconds longest_preparation() const override { return std::chrono::milliseconds(50); }

  Task<> serve(Thread& thread) override;
  Task<> use(Thread& thread, std::uint32_t number) override;
  Task<> inspect(Thread& thread) override;

  void note_failure(const ServerFailure& failure) override {
    const bool has_held = failure.alone && nodes_[*failure.alone].server != nullptr &&
                          nodes_[*failure.alone].server->has_metadata();
    ends_holds_[failure.when] = !failure.alone || has_held;
  }

  bool waits_for_operation() const override {
    return SessionScenario::waits_for_operation() || inspects_;
  }

 protected:
  void add_events(std::vector<std::uint64_t>& counts) const override {
    for (const Node& node : nodes_) {
      if (node.server) add_counts(node.server->events(), counts);
    }
    for (const Mounted* const mounted : mounted_) {
      add_counts(mounted->files().events(), counts);
    }
  }
  Task<std::string> audit() override;
  // Servers may take back what a client held some time after it has died.
  Picoseconds patience() const override { return std::chrono::milliseconds(20); }
  // The failure of a server that has no metadata does not end what clients hold.
  services::Verdict judge_sessions(std::span<const ServerFailure> failures,
                                   const services::ToJudge& judged) const override {
    std::vector<bool> keeps_holds;
    for (const ServerFailure& failure : failures) {
      const auto noted = ends_holds_.find(failure.when);
      const bool ends = noted != ends_holds_.end()
                            ? noted->second
                            : !failure.alone || has_role(*failure.alone, FsRole::metadata);
      keeps_holds.push_back(!ends);
    }
    Specification with_failures = specification();
    with_failures.set_keeps_holds(std::move(keeps_holds));
    return services::judge_history(with_failures, history(), inspector(),
                                   services::times_of(failures), problem(), judged);
  }
  void restore_observations() override {
    SessionScenario::restore_observations();
    inspects_ = false;
    for (Node& node : nodes_) node.audits = 0;
    audits_ = 0;
  }

 private:
  // A server.
  struct Node {
    bool is_made = false;
    std::shared_ptr<FsServer> server;  // while it is open
    std::uint64_t audits = 0;          // that have ended
  };
  // Keeps a server's part while it is open.
  class Opened {
   public:
    Opened(ClusterScenario& scenario, NodeId node, std::shared_ptr<FsServer> server)
        : scenario_(scenario), node_(scenario.nodes_[node]) {
      node_.server = std::move(server);
    }
    ~Opened() {
      scenario_.note_closed(node_.server->events());
      node_.server.reset();
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

   private:
    ClusterScenario& scenario_;
    Node& node_;
  };

  // The mount of a client, with a session. However it ends, what it holds then lingers until the
  // servers release it: they learn of a death, or of a broken connection, by themselves.
  class Mounted {
   public:
    Mounted(ClusterScenario& scenario, std::uint32_t client, Thread& thread,
            std::shared_ptr<FileSystem> files)
        : scenario_(scenario),
          files_(std::move(files)),
          slots_(std::max<std::size_t>(scenario.plan().shared, 2)),
          session_(files_->attach(thread)),
          program_{*session_, slots_, client, ++scenario.mounts_, {}, thread.executor.now()} {
      scenario.mounted_.insert(this);
    }
    ~Mounted() {
      scenario_.mounted_.erase(this);
      session_.reset();
      scenario_.note_closed(files_->events());
      files_.reset();
      if (is_unmounted_ || !scenario_.is_set_up()) return;
      const Operation unmount{.kind = Kind::unmount, .mount = program_.mount};
      scenario_.history().push_back(
          {{unmount, program_.last, program_.last, true}, program_.number});
    }
    Mounted(const Mounted&) = delete;
    Mounted& operator=(const Mounted&) = delete;

    Program& program() { return program_; }
    FileSystem& files() const { return *files_; }
    // Nothing may be used afterwards.
    Task<> unmount() {
      co_await yield();
      Calling calling(scenario_, {.kind = Kind::unmount, .mount = program_.mount}, program_.number);
      is_unmounted_ = true;
      session_.reset();
      co_await files_->unmount();
      co_await yield();
      calling.end();
    }

   private:
    ClusterScenario& scenario_;
    std::shared_ptr<FileSystem> files_;
    Slots slots_;
    std::unique_ptr<Session> session_;
    Program program_;
    bool is_unmounted_ = false;
  };

  Task<std::unique_ptr<Mounted>> mount(Thread& thread, std::uint32_t client) {
    auto files = co_await system().mount(thread, std::string(kName), config());
    // The thread is ahead of the simulated time, and failures are planned by that.
    co_await yield();
    co_return std::make_unique<Mounted>(*this, client, thread, std::move(files));
  }
  Task<std::unique_ptr<Mounted>> mount_after_others(Thread& thread);
  Task<> audit_when_asked(NodeId node);

  bool has_role(NodeId node, FsRole role) const {
    const auto& all = config().servers;
    return std::any_of(all.begin(), all.end(), [&](const FsServerNode& server) {
      return server.node == node && server.role == role;
    });
  }
  // True if a metadata server that starts again has failed alone, so that its mirror can take over.
  bool can_be_gone(NodeId node) const {
    const auto& all = config().servers;
    return !plan().metadata_returns && has_role(node, FsRole::metadata) &&
           std::any_of(all.begin(), all.end(), [this](const FsServerNode& server) {
             return server.role == FsRole::mirror && nodes_[server.node].server != nullptr;
           });
  }
  // The node of the first store; of the last server if there is none.
  NodeId store() const {
    const auto& all = config().servers;
    const auto found = std::find_if(all.begin(), all.end(), [](const FsServerNode& server) {
      return server.role == FsRole::store;
    });
    return found == all.end() ? servers() - 1 : found->node;
  }

  const FsCluster& cluster_;
  std::vector<Node> nodes_;
  // The metadata server, if it does not come back (FsCrashPlan::metadata_returns).
  std::optional<NodeId> gone_{};
  // By the time of a failure: true if it ends what clients hold.
  std::map<Time, bool> ends_holds_;
  std::uint32_t workers_ = 1;
  std::set<const Mounted*> mounted_;
  std::uint32_t mounts_ = 0;  // that there have been
  std::uint64_t audits_ = 0;  // that the inspector has asked for
  Mounted* inspector_ = nullptr;
  bool inspects_ = false;
};

// The first worker opens the node's part, the others help to serve it.
Task<> ClusterScenario::serve(Thread& thread) {
  const NodeId id = thread.node.id();
  const std::uint32_t port = thread.endpoint.address().port;
  Node& node = nodes_[id];
  if (port == 0 && node.is_made && can_be_gone(id)) gone_ = id;
  if (port == 0 && gone_ == id) note_serving(thread);  // nobody waits for it
  if (port >= cluster_.workers(config(), id) || gone_ == id) {
    for (;;) co_await sleep_for(kForEver);
  }
  if (port > 0) {
    while (!node.server) co_await sleep_for(kLook);
    const std::shared_ptr<FsServer> server = node.server;
    co_return co_await server->serve(thread);
  }
  if (!std::exchange(node.is_made, true)) {
    co_await system().make(thread, std::string(kName), config());
  }
  std::shared_ptr<FsServer> server = co_await cluster_.open(thread, std::string(kName), config());
  // A thread that has opened it is ahead of the simulated time: others would see it too early.
  co_await yield();
  const Opened opened(*this, id, std::move(server));
  if (const std::string damage = node.server->damage(); !damage.empty()) {
    note_problem(fmt::format("the part of node {} is damaged: {}", id, damage));
  }
  note_serving(thread);
  changed();
  thread.executor.spawn(audit_when_asked(id));
  co_await node.server->serve(thread);
}

Task<> ClusterScenario::audit_when_asked(NodeId id) {
  Node& node = nodes_[id];
  for (;;) {
    while (node.audits == audits_) co_await sleep_for(kLook);
    const std::uint64_t asked = audits_;
    const std::string contradiction = co_await node.server->audit();
    if (!contradiction.empty()) note_problem(fmt::format("on node {}: {}", id, contradiction));
    node.audits = asked;
  }
}

// Each server audits its part itself.
Task<std::string> ClusterScenario::audit() {
  ++audits_;
  const auto is_done = [this](const Node& node) {
    const bool is_gone = gone_ && &node == &nodes_[*gone_];
    return is_gone || node.audits == audits_;
  };
  while (!std::all_of(nodes_.begin(), nodes_.end(), is_done)) co_await sleep_for(kLook);
  co_return co_await inspector_->files().audit();
}

Task<> ClusterScenario::use(Thread& thread, std::uint32_t number) {
  const std::size_t epoch = next_epoch(number);
  if (epoch >= plan().sessions[number].size()) co_return;
  while (!serves(thread.executor.now())) co_await sleep_for(kLook);
  while (!is_set_up() && number > 0) co_await sleep_for(kLook);
  std::unique_ptr<Mounted> mounted = co_await mount(thread, number);
  if (!is_set_up()) co_await set_up(mounted->program());
  if (plan().at_once) {
    co_await wait_for_others();
  } else if (plan().steps_before == 0) {
    note_prepared();
  }
  if (plan().shared > 0) {
    const bool is_connected = co_await open_files(mounted->program());
    if (!is_connected) co_return;
  }
  const SessionPlan& of_session = plan().sessions[number][epoch];
  for (std::size_t i = 0; i < of_session.steps.size(); ++i) {
    if (plan().steps_before > 0 && number == 0 && i == plan().steps_before) note_prepared();
    if (of_session.steps[i].operation.kind == Kind::remount) {
      co_await mounted->unmount();
      mounted.reset();
      mounted = co_await mount(thread, number);
    } else {
      const bool is_connected = co_await do_step(mounted->program(), of_session.steps[i]);
      if (!is_connected) co_return;
    }
    if (of_session.pause > Picoseconds{}) co_await sleep_for(of_session.pause);
  }
  co_await mounted->unmount();
  mounted.reset();
  // A run ends with its clients, but a failure may also come after the last operation.
  co_await sleep_for(kLook);
}

Task<> ClusterScenario::inspect(Thread& thread) {
  while (clients_at_work() > 0 || !serves(thread.executor.now())) co_await sleep_for(kLook);
  inspects_ = true;
  co_await sleep_for(kUntilSettled);
  for (int round = 0; round < 2; ++round) {
    const std::unique_ptr<Mounted> mounted = co_await mount_after_others(thread);
    inspector_ = mounted.get();
    co_await look_around(mounted->program());
    if (round == 0) {
      co_await do_work_of_inspector(mounted->program());
      co_await look_around(mounted->program());
    }
    co_await mounted->unmount();
  }
  inspector_ = nullptr;
  inspects_ = false;
  changed();
}

// Servers whose sessions are all in use refuse further ones until they have learned which clients
// are gone.
Task<std::unique_ptr<ClusterScenario::Mounted>> ClusterScenario::mount_after_others(
    Thread& thread) {
  constexpr int kAttempts = 100;
  for (int attempt = 1;; ++attempt) {
    try {
      co_return co_await mount(thread, inspector());
    } catch (const PlatformError&) {
      if (attempt == kAttempts) throw;
    }
    co_await sleep_for(kLook);
  }
}

}  // namespace

std::unique_ptr<services::CrashScenario> cluster_scenario(const FsSystem& system, FsConfig config,
                                                          FsCrashPlan plan) {
  return std::make_unique<ClusterScenario>(system, std::move(config), std::move(plan));
}

}  // namespace perdura::fs
