#include "explore/crash_run.h"

#include <fmt/format.h>

#include <utility>

#include "explore/servers.h"
#include "platform/base/error.h"
#include "platform/base/limits.h"

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
      patience_(scenario),
      platform_(profile, {{"server", scenario.servers()}, {"client", scenario.clients() + 1}}) {
  platform_.track_durability(model);
  scenario_.watch([this] { patience_.note_progress(); });
}

CrashRun::~CrashRun() { scenario_.watch({}); }

void CrashRun::run(sim::Failure& failure, const std::set<std::uint64_t>& known) {
  start(failure);
  const auto inject = [this, &known](pmem::Choices& choices) {
    failed_at_ = platform_.engine().now();
    NotingChoices noting(choices);
    noting.digest = platform_.engine().fired() ^
                    static_cast<std::uint64_t>(failed_at_->time_since_epoch().count()) << 20;
    fail(noting);
    image_ = noting.digest;
    if (known.contains(image_)) {
      image_was_known_ = true;
      end_clients();
      return;
    }
    if (of_servers(failing_.kind)) {
      for (const NodeId node : failing_.servers) start_server(node);
    }
    start_inspector();
    patience_.begin(platform_, [this] { end_clients(); });
  };
  failure.watch(platform_, inject, [this] { return can_fail(); });
  run_platform();
  if (!failed_at_ && !client_problem_.empty()) scenario_.note_problem(client_problem_);
}

void CrashRun::run_to_failure(sim::Failure& failure,
                              const std::function<void(sim::SimPlatform&)>& look) {
  start(failure);
  failure.watch(platform_, [this, &look](pmem::Choices& choices) {
    failed_at_ = platform_.engine().now();
    look(platform_);
    fail(choices);
    platform_.at(*failed_at_ + kUntilNoticed, [this] { end_clients(); });
  });
  run_platform();
}

void CrashRun::start(sim::Failure& failure) {
  if (scenario_.prepares()) {
    failure.enable(false);
    scenario_.when_prepared([&failure] { failure.enable(true); });
  }
  for (NodeId node = 0; node < scenario_.servers(); ++node) start_server(node);
  for (std::uint32_t number = 0; number < scenario_.clients(); ++number) start_client(number);
}

void CrashRun::run_platform() {
  try {
    platform_.run();
  } catch (const std::exception& error) {
    rethrow_refused_memory(error);
    if (!failed_at_) throw;
    scenario_.note_problem(error.what());
  }
}

void CrashRun::fail(pmem::Choices& choices) {
  switch (failing_.kind) {
    case FailureKind::power:
      return platform_.fail_power(failing_.servers, choices);
    case FailureKind::process:
      for (const NodeId node : failing_.servers) platform_.kill(node);
      return;
    case FailureKind::client:
      return platform_.kill(scenario_.node_of_client(failing_.client));
    case FailureKind::connection: {
      const auto [at, peer] = breaking_ends();
      platform_.break_connections(at, peer);
      return;
    }
  }
}

// Before a client has connected, and where it is a thread of another server than the one it
// connects to, there is nothing that could break.
bool CrashRun::can_fail() const {
  if (failing_.kind != FailureKind::connection) return true;
  const auto [at, peer] = breaking_ends();
  return platform_.connected(at, peer);
}

std::pair<fabric::Address, fabric::Address> CrashRun::breaking_ends() const {
  const fabric::Address client{scenario_.node_of_client(failing_.client),
                               port_of_client(scenario_, failing_.client)};
  const fabric::Address server{failing_.servers.front(), 0};
  return failing_.server_first ? std::pair(server, client) : std::pair(client, server);
}

void CrashRun::end_clients() {
  for (std::uint32_t number = 0; number < scenario_.clients(); ++number) {
    platform_.kill(scenario_.node_of_client(number));
  }
  platform_.kill(scenario_.servers() + scenario_.clients());
}

void CrashRun::start_server(NodeId node) {
  explore::start_server(platform_, scenario_, node,
                        [this](Thread& thread) { return serve(thread); });
}

void CrashRun::start_client(std::uint32_t number) {
  platform_.start(scenario_.node_of_client(number), port_of_client(scenario_, number),
                  CompletionMode::polling,
                  [this, number](Thread& thread) { return use(thread, number); });
}

void CrashRun::start_inspector() {
  const NodeId node = scenario_.servers() + scenario_.clients();
  platform_.start(node, static_cast<fabric::Port>(node), CompletionMode::polling,
                  [this](Thread& thread) { return inspect(thread); });
}

Task<> CrashRun::serve(Thread& thread) {
  try {
    co_await scenario_.serve(thread);
  } catch (const std::exception& error) {
    rethrow_refused_memory(error);
    if (!failed_at_) throw;
    scenario_.note_problem(fmt::format("recovery fails: {}", error.what()));
  }
}

Task<> CrashRun::use(Thread& thread, std::uint32_t number) {
  const services::CrashScenario::AtWork at_work(scenario_);
  try {
    co_await scenario_.use(thread, number);
  } catch (const PlatformError& error) {
    if (client_problem_.empty()) client_problem_ = error.what();
  }
}

Task<> CrashRun::inspect(Thread& thread) {
  try {
    co_await scenario_.inspect(thread);
  } catch (const PlatformError& error) {
    scenario_.note_problem(error.what());
  }
}

}  // namespace perdura::explore
