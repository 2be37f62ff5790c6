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
  executor_.spawn(take_jobs());
  executor_.run();
  use_.end();
}

Task<> HostBackgroundThread::run(Task<> work) {
  const auto job = std::make_shared<Job>();
  job->work = std::move(work);
  job->caller = &runtime::current_thread_executor().doorbell();
  {
    const std::scoped_lock lock(mutex_);
    arrived_.push_back(job);
  }
  arrivals_.fetch_add(1, std::memory_order_seq_cst);
  doorbell_.ring();
  // GCC 12 destroys what a lambda within a co_await captures twice; a pointer bears that.
  const Job* const awaited = job.get();
  co_await until([awaited] { return awaited->ended.load(std::memory_order_acquire); });
  if (job->problem) std::rethrow_exception(job->problem);
}

Task<> HostBackgroundThread::take_jobs() {
  for (std::uint64_t taken = 0;;) {
    co_await until([this, taken] { return arrivals_.load(std::memory_order_acquire) != taken; });
    std::vector<std::shared_ptr<Job>> jobs;
    {
      const std::scoped_lock lock(mutex_);
      jobs.swap(arrived_);
    }
    taken += jobs.size();
    for (std::shared_ptr<Job>& job : jobs) executor_.spawn(perform(std::move(job)));
  }
}

Task<> HostBackgroundThread::perform(std::shared_ptr<Job> job) {
  // So that it ends with this task, if not before.
  Task<> work = std::move(job->work);
  try {
    co_await std::move(work);
  } catch (...) {
    job->problem = std::current_exception();
  }
  // After this the caller may be gone; its doorbell belongs to its thread, which waits for this
  // one.
  job->ended.exchange(true, std::memory_order_seq_cst);
  job->caller->ring();
}

}  // namespace perdura
