#include "platform/host/host_background.h"

namespace perdura {

using runtime::until;

HostBackgroundThread::HostBackgroundThread(const runtime::HostClock& clock,
                                           pmem::WriteMeter::Level accounting,
                                           std::vector<unsigned> cores, ThreadUse& use)
    : executor_(clock, CompletionMode::event, doorbell_, [](std::exception_ptr) {}),
      use_(use),
      thread_([this, accounting, cores = std::move(cores)] { main(accounting, cores); }) {}

HostBackgroundThread::~HostBackgroundThread() {
  executor_.stop();
  thread_.join();
}

void HostBackgroundThread::main(pmem::WriteMeter::Level accounting,
                                const std::vector<unsigned>& cores) {
  // Not only on the core of the thread that started it. That one runs, so these can be used.
  pin_this_thread(cores);
  use_.begin();
  pmem::thread_write_meter().set_level(accounting);
  WritesPublisher publisher(use_);
  executor_.add_poller(publisher);
  executor_.run();
  use_.end();
}

Task<> HostBackgroundThread::run(Task<> work) {
  std::future<void> end = executor_.inbox()->post(
      [given = std::make_shared<Task<>>(std::move(work))] { return std::move(*given); },
      runtime::current_thread_executor().inbox());
  // GCC 12 destroys what a lambda within a co_await captures twice; a pointer bears that.
  const std::future<void>* const awaited = &end;
  co_await until(
      [awaited] { return awaited->wait_for(Nanoseconds(0)) == std::future_status::ready; });
  end.get();
}

}  // namespace perdura
