// A background thread of a node of a real platform: an operating-system thread with its own
// executor, to which tasks of other executors hand work.
#pragma once

#include <future>
#include <mutex>
#include <optional>

#include "platform/host/host_node.h"
#include "platform/host/os_thread.h"
#include "platform/host/thread_executor.h"
#include "platform/platform.h"
#include "platform/runtime/doorbell.h"

namespace perdura {

class HostBackgroundThread final : public BackgroundThread {
 public:
  // The thread may run on all cores of the node's placement. Rethrows the exception if creating its
  // endpoint fails.
  HostBackgroundThread(HostNode& node, std::optional<fabric::Port> port, CompletionMode mode);
  ~HostBackgroundThread() override;

  Task<> run(Task<> work) override;
  Thread& thread() override;

 private:
  // The executor and doorbell of a thread without an endpoint.
  struct Alone {
    Alone(const runtime::HostClock& clock, host::ThreadExecutor::FailureHandler on_failure)
        : executor(clock, CompletionMode::event, doorbell, std::move(on_failure)) {}
    runtime::Doorbell doorbell;
    host::ThreadExecutor executor;
  };

  void main(std::optional<fabric::Port> port);
  void run_on(host::ThreadExecutor& executor);

  HostNode& node_;
  CompletionMode mode_;
  ThreadUse& use_;
  std::optional<Alone> alone_;
  host::ThreadExecutor* executor_ = nullptr;
  std::optional<Thread> context_;
  std::promise<void> begun_;
  // Keeps the executor alive until the destructor's call of stop() has returned.
  std::mutex ending_;
  OsThread thread_;
};

}  // namespace perdura
