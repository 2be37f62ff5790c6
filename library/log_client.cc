#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

#include "library/choice.h"
#include "platform/base/error.h"
#include "platform/host/thread_executor.h"
#include "systems/remote_log/remote_log.h"

namespace perdura {

namespace {

constexpr const char* kNoAnswer = ": no server answers";
constexpr Picoseconds kBetweenAttempts = Milliseconds(1);

// Thrown in the client's own thread to leave the job: its platform stops at once.
struct Leave {};

std::string in_seconds(std::chrono::milliseconds limit) {
  return fmt::format("{} s", std::chrono::duration<double>(limit).count());
}

}  // namespace

// The platform runs on a thread of its own; append() puts records in line for it.
//
// While a record is under way its bytes are a copy, so that the call that brought it may give up
// and return: the record stays where it is in line, and is tried until it is in the log.
class LogClient::Impl {
 public:
  explicit Impl(const LogOptions& options)
      : options_(library::log_options(options)),
        job_(options.job),
        connect_timeout_(options.connect_timeout),
        append_timeout_(options.append_timeout),
        platform_(platform_options(options)) {
    const library::Deadline deadline = library::deadline_after(connect_timeout_);
    platform_.start(library::kClient, library::kPort, CompletionMode::event,
                    [this](Thread& thread) { return serve(thread); });
    thread_ = std::thread([this] { run(); });
    std::unique_lock lock(mutex_);
    const bool in_time = wait(lock, connected_changed_, deadline,
                              [this] { return connected_ || error_ != nullptr; });
    if (in_time && error_ == nullptr) return;
    const std::exception_ptr error = error_;
    const std::string problem = problem_.empty() ? kNoAnswer : problem_;
    lock.unlock();
    leave();
    if (error != nullptr) std::rethrow_exception(error);
    throw TimedOut(fmt::format("the log '{}' cannot be reached within {}{}; start its server, or "
                               "raise connect_timeout",
                               job_, in_seconds(connect_timeout_), problem),
                   false);
  }
  ~Impl() { leave(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::uint64_t append(std::string_view record) {
    if (record.size() > options_.largest_record) {
      throw std::invalid_argument("a record of this log has at most " +
                                  std::to_string(options_.largest_record) + " bytes");
    }
    const library::Deadline deadline = library::deadline_after(append_timeout_);
    Request request{.record = record};
    std::unique_lock lock(mutex_);
    if (error_ != nullptr) std::rethrow_exception(error_);
    line_.push_back(&request);
    waiting_.fetch_add(1, std::memory_order_seq_cst);
    if (doorbell_ != nullptr) doorbell_->ring();
    const bool in_time = wait(lock, request.changed, deadline,
                              [&] { return request.number != 0 || error_ != nullptr; });
    if (request.number != 0) return request.number;
    if (!in_time) give_up(request);
    std::rethrow_exception(error_);
  }

  std::uint64_t tail() {
    const std::lock_guard lock(mutex_);
    return tail_;
  }
  const std::string& method() const { return options_.method.name; }

 private:
  // A call of append(), in its frame.
  struct Request {
    std::string_view record;
    std::uint64_t number = 0;  // when it is in the log
    std::condition_variable changed{};
  };

  static ShmOptions platform_options(const LogOptions& options) {
    ShmOptions result = library::shm_options(options, library::kClient);
    // Attempts are repeated here, where there is a limit for all of them.
    result.fabric.connection_timeout =
        std::min<Picoseconds>(library::picoseconds(options.connect_timeout), Milliseconds(100));
    return result;
  }

  // False if the deadline came first.
  static bool wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                   const library::Deadline& deadline, const auto& condition) {
    if (deadline) return changed.wait_until(lock, *deadline, condition);
    changed.wait(lock, condition);
    return true;
  }

  [[noreturn]] void give_up(Request& request) {
    const std::string text = fmt::format("a record is not in the log '{}' after {}{}; ", job_,
                                         in_seconds(append_timeout_), problem_);
    if (under_way_ == &request) {
      under_way_ = nullptr;
      throw TimedOut(text +
                         "it is under way, and the client goes on trying: do not append it "
                         "again with this client",
                     true);
    }
    std::erase(line_, &request);
    waiting_.fetch_sub(1, std::memory_order_seq_cst);
    throw TimedOut(text + "it never will be, so append it again", false);
  }

  void leave() {
    if (!thread_.joinable()) return;
    leaving_ = true;
    {
      const std::lock_guard lock(mutex_);
      if (doorbell_ != nullptr) doorbell_->ring();
    }
    thread_.join();
  }

  // --- on the platform's threads

  void run() {
    std::exception_ptr error;
    try {
      platform_.run();
    } catch (const Leave&) {
    } catch (const bench::LogDiffers& problem) {
      error = std::make_exception_ptr(OptionsDiffer(
          fmt::format("the server of the log '{}' has other options: {}; give both sides the same "
                      "options",
                      job_, library::differing_options(problem, options_, "at the server"))));
    } catch (const persistence::OptionsDiffer& problem) {
      error = std::make_exception_ptr(OptionsDiffer(problem.what()));
    } catch (const PlatformError& problem) {
      error = std::make_exception_ptr(std::runtime_error(problem.what()));
    } catch (const UsageError& problem) {
      error = std::make_exception_ptr(std::runtime_error(problem.what()));
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    doorbell_ = nullptr;
    error_ = error;
    connected_changed_.notify_all();
    for (Request* request : line_) request->changed.notify_one();
    if (under_way_ != nullptr) under_way_->changed.notify_one();
  }

  // What the other tasks wait for may never come.
  Task<> leave_when_told() {
    co_await runtime::until([this] { return leaving_.load(); });
    throw Leave{};
  }

  Task<> serve(Thread& thread) {
    {
      const std::lock_guard lock(mutex_);
      doorbell_ = &runtime::current_thread_executor().doorbell();
    }
    thread.executor.spawn(leave_when_told());
    for (;;) {
      const auto log = co_await connect(thread);
      {
        const std::lock_guard lock(mutex_);
        connected_ = true;
        problem_.clear();
        tail_ = log->tail();
        // A record that was under way when the connection broke is the last one, or was not taken:
        // nobody else appends.
        if (number_ != 0 && tail_ == number_) finish();
        connected_changed_.notify_all();
      }
      co_await use(*log);
      const std::lock_guard lock(mutex_);
      problem_ = kNoAnswer;
    }
  }

  Task<std::unique_ptr<bench::RemoteLog>> connect(Thread& thread) {
    for (;;) {
      try {
        co_return co_await bench::RemoteLog::connect(thread, {library::kServer, library::kPort},
                                                     options_);
      } catch (const persistence::NoAnswer&) {
        // The server is not there, or not yet.
        const std::lock_guard lock(mutex_);
        problem_ = kNoAnswer;
      } catch (const persistence::RefusedForNow& problem) {
        const bool busy = problem.reason == persistence::Rejection::Reason::busy;
        const std::lock_guard lock(mutex_);
        problem_ = busy ? ": its server has not let go of another client" : ": its server ends";
      } catch (const PlatformError& problem) {
        const std::lock_guard lock(mutex_);
        problem_ = fmt::format(": {}", problem.what());
      }
      co_await sleep_for(kBetweenAttempts);
    }
  }

  // Until the connection is over.
  Task<> use(bench::RemoteLog& log) {
    while (!log.is_over()) {
      if (!take_next()) {
        co_await runtime::until(
            [&] { return waiting_.load(std::memory_order_seq_cst) != 0 || log.is_over(); });
        continue;
      }
      number_ = log.tail() + 1;
      const auto number = co_await log.append(std::as_bytes(std::span(record_)));
      if (!number) co_return;
      const std::lock_guard lock(mutex_);
      tail_ = *number;
      finish();
    }
  }

  // The record that is under way, if there is one, or else the first in line. False if there is
  // none.
  bool take_next() {
    const std::lock_guard lock(mutex_);
    if (number_ != 0) return true;
    if (line_.empty()) return false;
    under_way_ = line_.front();
    line_.pop_front();
    waiting_.fetch_sub(1, std::memory_order_seq_cst);
    record_.assign(under_way_->record);
    return true;
  }

  // The record that was under way is in the log.
  void finish() {
    if (under_way_ != nullptr) {
      under_way_->number = number_;
      under_way_->changed.notify_one();
    }
    under_way_ = nullptr;
    number_ = 0;
  }

  bench::LogOptions options_;
  std::string job_;
  std::chrono::milliseconds connect_timeout_;
  std::chrono::milliseconds append_timeout_;
  ShmPlatform platform_;
  std::thread thread_;

  // The platform's thread only.
  std::string record_;
  std::uint64_t number_ = 0;  // that it has or is to have; 0 if none is under way

  std::atomic<std::uint64_t> waiting_{0};  // in line
  std::atomic<bool> leaving_{false};

  std::mutex mutex_;
  std::condition_variable connected_changed_;
  std::deque<Request*> line_;
  Request* under_way_ = nullptr;  // null also if its call has given up
  runtime::Doorbell* doorbell_ = nullptr;
  std::uint64_t tail_ = 0;
  bool connected_ = false;
  std::string problem_;  // why the server cannot be reached
  std::exception_ptr error_;
};

LogClient::LogClient(const LogOptions& options) try : impl_(std::make_unique<Impl>(options)) {
} catch (const fabric::shm::NodeRuns&) {
  throw std::runtime_error(fmt::format(
      "the log '{}' has a client already; end that one first, or append through it", options.job));
}
LogClient::~LogClient() = default;
std::uint64_t LogClient::append(std::string_view record) { return impl_->append(record); }
std::uint64_t LogClient::tail() const { return impl_->tail(); }
const std::string& LogClient::method() const { return impl_->method(); }

}  // namespace perdura
