#include "systems/mcas/pool_process.h"

#include <fmt/format.h>

#include "platform/base/error.h"
#include "platform/base/report_line.h"

namespace perdura::systems::mcas {

using ado::CompletionMessage;
using ado::WorkStatus;

namespace {

constexpr int kMostFailedLaunches = 3;  // failures in a row that end the attempts

}  // namespace

// Marks the time during which one task launches or ends the process.
class PoolProcess::ChangingMark {
 public:
  explicit ChangingMark(PoolProcess& process) : process_(process) {
    process_.changing_ = true;
    process_.failed_ = false;
  }
  ChangingMark(const ChangingMark&) = delete;
  ChangingMark& operator=(const ChangingMark&) = delete;
  ~ChangingMark() {
    process_.changing_ = false;
    process_.changed_.wake_all();
  }

 private:
  PoolProcess& process_;
};

void PoolProcess::Running::end() {
  if (launched) launched->end();
  launched.reset();
}

void PoolProcess::Running::say(const std::string& what) const {
  report_line(fmt::format("perdura: {}: {}", title, what));
}

PoolProcess::~PoolProcess() { running_->end(); }

bool PoolProcess::is_current() const {
  return host_ && host_->attached() && shown_ == pools_.memory_of(callbacks_.pool());
}

Task<CompletionMessage> PoolProcess::work(ado::WorkMessage order, ado::LockMode mode) {
  for (;;) {
    if ((changing_ || !is_current()) && !co_await launch_if_needed()) {
      callbacks_.unlock(order.key, mode);
      co_return CompletionMessage{
          .status = WorkStatus::failed,
          .error =
              fmt::format("the process of active data objects cannot be launched: {}", problem_)};
    }
    order.value = callbacks_.find(order.key).value_or(ByteRange{});
    Task<CompletionMessage> working = host_->work(order, mode);
    CompletionMessage completion = co_await std::move(working);
    if (completion.status != WorkStatus::unseen) co_return completion;
    if (!is_current()) continue;
    // Another process would not see any more than this one.
    callbacks_.unlock(order.key, mode);
    completion.status = WorkStatus::failed;
    co_return completion;
  }
}

// Tasks that wait for a launch share its failure.
Task<bool> PoolProcess::launch_if_needed() {
  while (changing_) {
    co_await wait(changed_);
    if (!changing_ && failed_) co_return false;
  }
  if (is_current()) co_return true;
  const ChangingMark change(*this);
  for (int failures = 0; !is_current();) {
    std::string problem = co_await launch();
    // A process that is alive but not current sees too little: the pool has got memory meanwhile.
    if (problem.empty() && !host_->attached()) problem = "it dies as soon as it is launched";
    failed_ = !problem.empty();
    if (!failed_ || ++failures < kMostFailedLaunches) continue;
    problem_ = problem;
    running_->say(fmt::format("the process cannot be launched: {}", problem));
    co_return false;
  }
  co_return true;
}

// Returns the reason of a failure; empty on success.
Task<std::string> PoolProcess::launch() {
  co_await end();
  const std::vector<ByteRange> parts = pools_.parts_of(callbacks_.pool());
  shown_ = pools_.memory_of(callbacks_.pool());
  // Clients choose the names of pools; escaping keeps each name within its line.
  running_->title =
      fmt::format("shard '{}', pool {:?}, plugins {}", options_.memory,
                  pools_.name_of(callbacks_.pool()), fmt::join(options_.plugins, ", "));
  callbacks_.show(parts);
  std::string problem;
  try {
    if (!host_) {
      ado::HostOptions options{
          .patience = options_.patience,
          .end_process =
              [running = running_] { return running->launched ? running->launched->end() : ""; },
          .on_lost =
              [running = running_](const std::string& why) {
                if (!running->launched) return;  // the shard has ended it
                running->say(
                    fmt::format("{}; calls under way have failed, and the next one "
                                "launches another process",
                                why));
              },
          .peer = options_.peer};
      host_ = std::make_shared<ado::Host>(thread_, callbacks_, std::move(options));
    }
    ado::LaunchOrder order{name_, options_.memory, parts, options_.plugins};
    Task<std::unique_ptr<ado::Launched>> launching = options_.launcher->launch(std::move(order));
    running_->launched = co_await std::move(launching);
    co_await host_->attach(running_->launched->process(), members_.joins());
    co_return std::string();
  } catch (const PlatformError& error) {
    problem = error.what();
  } catch (const UsageError& error) {
    problem = error.what();
  }
  co_await end();
  co_return problem;
}

// Lets invocations that are under way end first.
Task<> PoolProcess::end() {
  if (host_ && host_->attached()) co_await host_->shut_down();
  running_->end();
}

Task<> PoolProcess::stop() {
  while (changing_) co_await wait(changed_);
  if (!is_idle()) co_return;
  const ChangingMark change(*this);
  co_await end();
}

}  // namespace perdura::systems::mcas
