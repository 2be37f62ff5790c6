#include "platform/host/os_thread.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "platform/base/error.h"
#include "platform/base/limits.h"

namespace perdura {

namespace {

class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

std::thread started(std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& refused) {
    throw PlatformError(no_more_threads(refused.code().value()));
  }
}

}  // namespace

std::string no_more_threads(int error) {
  return fmt::format(
      "cannot start another thread ({}): {}; raise the limit, or use fewer clients or threads",
      std::generic_category().message(error), limits_of_threads());
}

OsThread::OsThread(std::function<void()> body, ThreadSignals signals) {
  if (signals == ThreadSignals::as_starter) {
    thread_ = started(std::move(body));
  } else {
    const AllSignalsBlocked blocked;
    thread_ = started(std::move(body));
  }
}

OsThread::~OsThread() {
  if (thread_.joinable()) thread_.join();
}

OsThread& OsThread::operator=(OsThread&& other) {
  if (thread_.joinable()) thread_.join();
  thread_ = std::move(other.thread_);
  return *this;
}

OsThreads::OsThreads(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::promise<bool> all_run;
  const std::shared_future<bool> go = all_run.get_future().share();
  threads_.reserve(count);
  try {
    for (std::size_t i = 0; i < count; ++i) {
      threads_.emplace_back([go, body, i] {
        if (go.get()) body(i);
      });
    }
  } catch (...) {
    all_run.set_value(false);
    throw;
  }
  all_run.set_value(true);
}

void OsThreads::join() { threads_.clear(); }

void work_together(std::size_t most, const std::function<void(std::size_t)>& work) {
  std::vector<OsThread> others;
  others.reserve(std::max<std::size_t>(most, 1) - 1);
  try {
    for (std::size_t i = 1; i < most; ++i) others.emplace_back([&work, i] { work(i); });
  } catch (const PlatformError&) {
    // The threads that run do all of the work.
  }
  work(0);
}

void share_out(std::size_t threads, std::size_t count,
               const std::function<void(std::size_t)>& work) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr problem;
  work_together(std::min(threads, count), [&](std::size_t) {
    try {
      for (std::size_t piece; (piece = next++) < count;) work(piece);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!problem) problem = std::current_exception();
    }
  });
  if (problem) std::rethrow_exception(problem);
}

}  // namespace perdura
