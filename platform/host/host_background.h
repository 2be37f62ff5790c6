// A background thread of a node of a real platform: an operating-system thread whose executor is
// given tasks by another one's.
#pragma once

#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include "platform/host/host_node.h"
#include "platform/host/thread_executor.h"
#include "platform/platform.h"
#include "platform/runtime/doorbell.h"

namespace perdura {

class HostBackgroundThread final : public BackgroundThread {
 public:
  // It may run on the node's cores, if there are any. Throws what keeps it from having an endpoint.
  HostBackgroundThread(HostNode& node, std::optional<fabric::Port> port);
  ~HostBackgroundThread() override;

  Task<> run(Task<> work) override;
  Thread& thread() override;

 private:
  // Of a thread without an endpoint.
  struct Alone {
    Alone(const runtime::HostClock& clock, runtime::ThreadExecutor::FailureHandler on_failure)
        : executor(clock, CompletionMode::event, doorbell, std::move(on_failure)) {}
    runtime::Doorbell doorbell;
    runtime::ThreadExecutor executor;
  };

  void main(std::optional<fabric::Port> port);
  void run_on(runtime::ThreadExecutor& executor);

  HostNode& node_;
  ThreadUse& use_;
  std::optional<Alone> alone_;
  runtime::ThreadExecutor* executor_ = nullptr;
  std::optional<Thread> context_;
  std::promise<void> begun_;
  std::mutex ending_;  // the executor is not gone before it has been told to stop
  std::thread thread_;
};

}  // namespace perdura
