#include "bench/crash/crash_run.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "platform/base/error.h"

namespace perdura::bench {

namespace {

// In virtual time: a system that has not served the inspector by then is assumed never to do so.
constexpr Picoseconds kPatience = std::chrono::seconds(2);

// A process that died is started again when the device has placed what had arrived for it.
constexpr Picoseconds kRestart = Microseconds(100);

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
      platform_(profile, {{"server", scenario.servers()}, {"client", scenario.clients() + 1}}) {
  platform_.track_durability(model);
}

void CrashRun::run(sim::Failure& failure, const std::set<std::uint64_t>& known) {
  if (scenario_.prepares()) {
    failure.enable(false);
    scenario_.when_prepared([&failure] { failure.enable(true); });
  }
  for (NodeId node = 0; node < scenario_.servers(); ++node) start_server(node);
  for (std::uint32_t number = 0; number < scenario_.clients(); ++number) start_client(number);
  failure.watch(platform_, [this, &known](pmem::Choices& choices) {
    const Time now = platform_.engine().now();
    NotingChoices noting(choices);
    noting.digest = platform_.engine().fired() ^
                    static_cast<std::uint64_t>(now.time_since_epoch().count()) << 20;
    fail(noting);
    image_ = noting.digest;
    if (known.contains(image_)) {
      image_was_known_ = true;
      end_clients();
      return;
    }
    restart();
    if (failing_.again) return fail_again(choices);
    await_inspection();
  });
  try {
    platform_.run();
  } catch (const std::exception& error) {
    if (failures_.empty()) throw;
    scenario_.note_problem(error.what());
  }
  if (failures_.empty() && !client_problem_.empty()) scenario_.note_problem(client_problem_);
}

void CrashRun::restart() {
  if (!of_servers(failing_.kind)) return;
  if (failing_.kind == FailureKind::power) {
    for (const NodeId node : failing_.servers) start_server(node);
    return;
  }
  platform_.at(failures_.back() + kRestart, [this] {
    for (const NodeId node : failing_.servers) start_server(node);
  });
}

// Half of the second failures come while the servers recover, or soon after that.
void CrashRun::fail_again(pmem::Choices& choices) {
  constexpr std::array<std::int64_t, 2> kWindows{Picoseconds(Microseconds(10)).count(),
                                                 Picoseconds(Microseconds(100)).count()};
  const auto drawn = static_cast<std::int64_t>(image_ >> 8);
  for (std::uint32_t number = 0; number < scenario_.clients(); ++number) start_client(number);
  const Picoseconds after(drawn % kWindows[image_ % 2]);
  const Picoseconds down = failing_.kind == FailureKind::process ? kRestart : Picoseconds::zero();
  platform_.at(failures_.back() + down + after, [this, &choices] {
    fail(choices);
    restart();
    await_inspection();
  });
}

void CrashRun::await_inspection() {
  start_inspector();
  platform_.at(failures_.back() + kPatience, [this] {
    scenario_.note_problem("the system does not answer any more");
    end_clients();
  });
}

void CrashRun::fail(pmem::Choices& choices) {
  failures_.push_back(platform_.engine().now());
  switch (failing_.kind) {
    case FailureKind::power:
      return platform_.fail_power(failing_.servers, choices);
    case FailureKind::process:
      for (const NodeId node : failing_.servers) platform_.kill(node);
      return;
    case FailureKind::client:
      return platform_.kill(node_of_client(failing_.client));
    case FailureKind::connection: {
      const NodeId node = node_of_client(failing_.client);
      const fabric::Address client{node, port_of(node)};
      const fabric::Address server{failing_.servers.front(), 0};
      platform_.break_connections(failing_.server_first ? server : client,
                                  failing_.server_first ? client : server);
      return;
    }
  }
}

void CrashRun::end_clients() {
  for (NodeId node = scenario_.servers(); node < platform_.node_count(); ++node) {
    platform_.kill(node);
  }
}

void CrashRun::start_server(NodeId node) {
  platform_.start_service(node, 0, CompletionMode::polling,
                          [this](Thread& thread) { return serve(thread); });
}

void CrashRun::start_client(std::uint32_t number) {
  const NodeId node = node_of_client(number);
  platform_.start(node, port_of(node), CompletionMode::polling,
                  [this, number](Thread& thread) { return use(thread, number); });
}

// A client that connects again has another port than before, since its former thread may still be
// finding out that the server has gone.
fabric::Port CrashRun::port_of(NodeId client) const {
  constexpr std::size_t kPortsOfEpoch = 64;
  return static_cast<fabric::Port>(client + failures_.size() * kPortsOfEpoch);
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
    if (failures_.empty()) throw;
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

}  // namespace perdura::bench
