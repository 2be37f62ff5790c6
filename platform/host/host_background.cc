#include "platform/host/host_background.h"

#include "platform/base/error.h"
#include "platform/pmem/accounting.h"

namespace perdura {

using host::until;

HostBackgroundThread::HostBackgroundThread(HostNode& node, std::optional<fabric::Port> port,
                                           CompletionMode mode)
    : node_(node), mode_(mode), use_(node.add_thread()) {
  if (!port) {
    executor_ = &alone_.emplace(node.clock(), node.threads().fail).executor;
    begun_.set_value();
  }
  thread_ = OsThread([this, port] { main(port); });
  try {
    begun_.get_future().get();
  } catch (...) {
    thread_.join();
    throw;
  }
}

HostBackgroundThread::~HostBackgroundThread() {
  {
    const std::scoped_lock lock(ending_);
    executor_->stop();
  }
  thread_.join();
}

void HostBackgroundThread::main(std::optional<fabric::Port> port) {
  // The thread that started this one keeps its own core busy, so this one may use all cores of the
  // node.
  pin_this_thread(node_.placement().cores);
  use_.begin();
  pmem::thread_write_meter().set_level(node_.accounting());
  if (!port) {
    run_on(alone_->executor);
  } else {
    try {
      node_.threads().with_endpoint(
          *port, [&](host::ThreadExecutor& executor, fabric::Endpoint& endpoint) {
            executor_ = &executor;
            context_.emplace(Thread{node_, executor, endpoint});
            begun_.set_value();
            run_on(executor);
          });
    } catch (...) {
      begun_.set_exception(std::current_exception());
    }
  }
  use_.end();
}

void HostBackgroundThread::run_on(host::ThreadExecutor& executor) {
  WritesPublisher publisher(use_);
  executor.add_poller(publisher);
  executor.set_mode(mode_);
  executor.run();
  const std::scoped_lock lock(ending_);
}

Thread& HostBackgroundThread::thread() {
  if (!context_) throw UsageError("a background thread has an endpoint if it is given a port");
  return *context_;
}

Task<> HostBackgroundThread::run(Task<> work) {
  std::future<void> end = executor_->inbox()->post(
      [given = std::make_shared<Task<>>(std::move(work))] { return std::move(*given); },
      host::current_thread_executor().inbox());
  // GCC 12 destroys the captures of a lambda within a co_await expression twice, which does no harm
  // to a pointer.
  const std::future<void>* const awaited = &end;
  co_await until(
      [awaited] { return awaited->wait_for(Nanoseconds(0)) == std::future_status::ready; });
  end.get();
}

}  // namespace perdura
