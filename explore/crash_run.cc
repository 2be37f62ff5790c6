#include "explore/crash_run.h"

#include <utility>

namespace perdura::explore {

namespace {

// In virtual time. By then clients know that their servers are gone, except for those that were
// connecting.
constexpr Picoseconds kUntilNoticed = std::chrono::milliseconds(1);

// Passes choices on and keeps a digest of the alternatives that were taken.
class NotingChoices final : public pmem::Choices {
 public:
  explicit NotingChoices(pmem::Choices& choices) : choices_(choices) {}
  std::size_t choose(std::size_t n) override {
    const std::size_t taken = choices_.choose(n);
    digest = (digest ^ (n << 32 | taken)) * 0x9E3779B97F4A7C15;
    digest ^= digest >> 29;
    return taken;
  }
  std::uint64_t digest = 0;

 private:
  pmem::Choices& choices_;
};

}  // namespace

CrashRun::CrashRun(services::CrashScenario& scenario, const sim::Profile& profile,
                   const pmem::PersistenceModel& model, WhatFails failing)
    : scenario_(scenario),
      failing_(std::move(failing)),
      run_(scenario, profile, scenario.clients()) {
  run_.platform().track_durability(model);
}

void CrashRun::run(sim::Failure& failure, const std::set<std::uint64_t>& known) {
  start(failure);
  const auto inject = [this, &known](pmem::Choices& choices) {
    NotingChoices noting(choices);
    noting.digest = run_.platform().engine().fired() ^
                    static_cast<std::uint64_t>(run_.now().time_since_epoch().count()) << 20;
    fail(noting);
    image_ = noting.digest;
    if (known.contains(image_)) {
      image_was_known_ = true;
      run_.end_clients();
      return;
    }
    if (of_servers(failing_.kind)) {
      for (const NodeId node : failing_.servers) run_.start_server(node);
    }
    run_.start_inspector();
    run_.be_patient();
  };
  failure.watch(run_.platform(), inject, [this] { return can_fail(); });
  run_.run();
  if (!failed_at_ && !run_.client_problem().empty()) scenario_.note_problem(run_.client_problem());
}

void CrashRun::run_to_failure(sim::Failure& failure,
                              const std::function<void(sim::SimPlatform&)>& look) {
  start(failure);
  failure.watch(run_.platform(), [this, &look](pmem::Choices& choices) {
    look(run_.platform());
    fail(choices);
    run_.platform().at(*failed_at_ + kUntilNoticed, [this] { run_.end_clients(); });
  });
  run_.run();
}

void CrashRun::start(sim::Failure& failure) {
  if (scenario_.prepares()) {
    failure.enable(false);
    scenario_.when_prepared([&failure] { failure.enable(true); });
  }
  run_.start_servers();
  for (std::uint32_t number = 0; number < scenario_.clients(); ++number) {
    run_.start_client(number);
  }
}

void CrashRun::fail(pmem::Choices& choices) {
  failed_at_ = run_.now();
  run_.note_problems();
  sim::SimPlatform& platform = run_.platform();
  switch (failing_.kind) {
    case FailureKind::power:
      return platform.fail_power(failing_.servers, choices);
    case FailureKind::process:
      for (const NodeId node : failing_.servers) platform.kill(node);
      return;
    case FailureKind::client:
      return platform.kill(scenario_.node_of_client(failing_.client));
    case FailureKind::connection: {
      const auto [at, peer] = breaking_ends();
      platform.break_connections(at, peer);
      return;
    }
  }
}

// Before a client has connected, and where it is a thread of another server than the one it
// connects to, there is nothing that could break.
bool CrashRun::can_fail() const {
  if (failing_.kind != FailureKind::connection) return true;
  const auto [at, peer] = breaking_ends();
  return run_.platform().connected(at, peer);
}

std::pair<fabric::Address, fabric::Address> CrashRun::breaking_ends() const {
  const fabric::Address client{scenario_.node_of_client(failing_.client),
                               port_of_client(scenario_, failing_.client)};
  const fabric::Address server{failing_.servers.front(), 0};
  return failing_.server_first ? std::pair(server, client) : std::pair(client, server);
}

}  // namespace perdura::explore
