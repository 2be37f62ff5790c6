#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>
#include <thread>

#include "bench/log/remote_log.h"
#include "library/choice.h"
#include "platform/error.h"

namespace perdura {

namespace {

// Looks for work without a pause while work keeps coming, and seldom when it does not.
constexpr int kTurnsBeforeSleep = 20'000;
constexpr Picoseconds kSleep = Microseconds(50);
constexpr Picoseconds kBetweenAttempts = Milliseconds(1);

// Thrown in the client's own thread to leave the job: its platform stops at once.
struct Leave {};

}  // namespace

// The platform runs on a thread of its own; append() hands records over.
class LogClient::Impl {
 public:
  explicit Impl(const LogOptions& options)
      : options_(library::log_options(options)),
        platform_(library::shm_options(options, library::kClient)) {
    platform_.start(library::kClient, library::kPort, CompletionMode::polling,
                    [this](Thread& thread) { return serve(thread); });
    thread_ = std::thread([this] { run(); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return connected_ || error_; });
    if (!error_) return;
    lock.unlock();
    thread_.join();
    std::rethrow_exception(error_);
  }
  ~Impl() {
    if (!thread_.joinable()) return;
    leaving_ = true;
    thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::uint64_t append(std::string_view record) {
    if (record.size() > options_.largest_record) {
      throw std::invalid_argument("a record of this log has at most " +
                                  std::to_string(options_.largest_record) + " bytes");
    }
    std::unique_lock lock(mutex_);
    record_ = record;
    appended_ = 0;
    waiting_.store(true, std::memory_order_release);
    changed_.wait(lock, [this] { return appended_ != 0 || error_; });
    if (error_) std::rethrow_exception(error_);
    return appended_;
  }

  std::uint64_t tail() {
    const std::lock_guard lock(mutex_);
    return tail_;
  }
  const std::string& method() const { return options_.method.name; }

 private:
  void run() {
    std::exception_ptr error;
    try {
      platform_.run();
    } catch (const Leave&) {
    } catch (const PlatformError& problem) {
      error = std::make_exception_ptr(std::runtime_error(problem.what()));
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    error_ = error;
    changed_.notify_all();
  }

  Task<> serve(Thread& thread) {
    for (;;) {
      auto log = co_await connect(thread);
      {
        const std::lock_guard lock(mutex_);
        connected_ = true;
        tail_ = log->tail();
        // A record that was under way when the connection broke is the next one, or was not taken:
        // nobody else appends.
        if (under_way_ != 0 && tail_ == under_way_) finish(under_way_);
        changed_.notify_all();
      }
      co_await use(*log);
    }
  }

  Task<std::unique_ptr<bench::RemoteLog>> connect(Thread& thread) {
    for (;;) {
      leave_if_told();
      std::unique_ptr<bench::RemoteLog> log;
      try {
        log = co_await bench::RemoteLog::connect(thread, {library::kServer, library::kPort},
                                                 options_);
      } catch (const PlatformError&) {
        // The server is not there, or not yet.
      }
      if (log) co_return log;
      co_await sleep_for(kBetweenAttempts);
    }
  }

  // Until the connection breaks.
  Task<> use(bench::RemoteLog& log) {
    int turns = 0;
    for (;;) {
      leave_if_told();
      if (!waiting_.load(std::memory_order_acquire)) {
        if (++turns < kTurnsBeforeSleep) {
          co_await yield();
        } else {
          co_await sleep_for(kSleep);
        }
        continue;
      }
      turns = 0;
      under_way_ = log.tail() + 1;
      const auto number = co_await log.append(std::as_bytes(std::span(record_)));
      if (!number) co_return;
      const std::lock_guard lock(mutex_);
      tail_ = *number;
      finish(*number);
    }
  }

  void finish(std::uint64_t number) {
    under_way_ = 0;
    waiting_ = false;
    appended_ = number;
    changed_.notify_all();
  }
  void leave_if_told() const {
    if (leaving_) throw Leave{};
  }

  bench::LogOptions options_;
  ShmPlatform platform_;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string_view record_;
  std::uint64_t appended_ = 0;  // its number, when it is done
  std::uint64_t tail_ = 0;
  bool connected_ = false;
  std::exception_ptr error_;
  std::atomic<bool> waiting_{false};
  std::atomic<bool> leaving_{false};
  std::uint64_t under_way_ = 0;  // the platform's thread only
};

LogClient::LogClient(const LogOptions& options) : impl_(std::make_unique<Impl>(options)) {}
LogClient::~LogClient() = default;
std::uint64_t LogClient::append(std::string_view record) { return impl_->append(record); }
std::uint64_t LogClient::tail() const { return impl_->tail(); }
const std::string& LogClient::method() const { return impl_->method(); }

}  // namespace perdura
