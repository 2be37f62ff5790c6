#include <fmt/format.h>

#include <atomic>
#include <deque>
#include <exception>
#include <future>
#include <span>

#include "library/choice.h"
#include "library/signals_blocked.h"
#include "platform/base/error.h"
#include "platform/base/node_runs.h"
#include "platform/host/os_thread.h"
#include "platform/host/thread_executor.h"
#include "platform/runtime/sync.h"
#include "systems/remote_log/remote_log.h"

namespace perdura {

namespace {

constexpr const char* kNoAnswer = ": no server answers";
constexpr Picoseconds kBetweenAttempts = Milliseconds(1);

// Thrown in the client's own thread to leave the job: the platform then stops at once.
struct Leave {};

std::string in_seconds(std::chrono::milliseconds limit) {
  return fmt::format("{} s", std::chrono::duration<double>(limit).count());
}

}  // namespace

// The platform runs on a thread of its own. Only that thread uses the line and the connection;
// calls hand their work to its inbox.
//
// While a record is being sent, the client uses a copy of its bytes, so that the call that brought
// the record may give up and return: the record keeps its place in line, and is retried until it is
// in the log.
class LogClient::Impl {
 public:
  explicit Impl(const LogOptions& options)
      : options_(library::log_options(options)),
        job_(options.job),
        connect_timeout_(options.connect_timeout),
        append_timeout_(options.append_timeout),
        platform_(platform_options(options)) {
    const library::SignalsBlocked blocked;
    const library::Deadline deadline = library::deadline_after(connect_timeout_);
    platform_.start(library::kClient, library::kPort, CompletionMode::event,
                    [this](Thread& thread) { return serve(thread); });
    std::future<std::shared_ptr<host::Inbox>> inbox = begun_.get_future();
    thread_ = OsThread([this] { run(); });
    try {
      inbox_ = inbox.get();
      std::future<void> connected = inbox_->post([this] { return until_connected(); });
      if (in_time(connected, deadline)) {
        connected.get();
        return;
      }
    } catch (const std::future_error&) {
      // The platform has ended; get() below throws the reason.
    }
    leave();
    ended_.get();
    throw TimedOut(fmt::format("the log '{}' cannot be reached within {}{}; start its server, or "
                               "raise connect_timeout",
                               job_, in_seconds(connect_timeout_), problem_),
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
    const auto request = std::make_shared<Request>();
    request->record = record;
    try {
      std::future<std::uint64_t> number = inbox_->post([this, request] { return put(request); });
      if (!in_time(number, deadline)) {
        inbox_->post([this, request] { return give_up(request); }).get();
      }
      return number.get();
    } catch (const std::future_error&) {
      ended_.get();
      throw;
    }
  }

  std::uint64_t tail() const { return tail_; }
  const std::string& method() const { return options_.method.name; }

 private:
  // One call of append(). It waits in line until its record is sent.
  struct Request {
    std::string_view record{};
    std::uint64_t number = 0;  // 0 until the record is in the log
    WaitList out_of_line{};
  };

  static ShmOptions platform_options(const LogOptions& options) {
    ShmOptions result = library::shm_options(options, library::kClient);
    // connect() below repeats the attempts, within one limit for all of them, so each one is
    // short.
    result.fabric.connection_timeout =
        std::min<Picoseconds>(library::picoseconds(options.connect_timeout), Milliseconds(100));
    return result;
  }

  template <class T>
  static bool in_time(const std::future<T>& result, const library::Deadline& deadline) {
    if (deadline) return result.wait_until(*deadline) == std::future_status::ready;
    result.wait();
    return true;
  }

  void leave() {
    if (!thread_.joinable()) return;
    if (inbox_ != nullptr) inbox_->post([] { return leave_job(); });
    thread_.join();
  }

  // --- run by the platform's threads

  void run() {
    std::exception_ptr error;
    try {
      platform_.run();
    } catch (const Leave&) {
    } catch (const systems::remote_log::LogDiffers& problem) {
      error = std::make_exception_ptr(OptionsDiffer(
          fmt::format("the server of the log '{}' has other options: {}; give both sides the same "
                      "options",
                      job_, library::differing_options(problem, options_, "at the server"))));
    } catch (const methods::OptionsDiffer& problem) {
      error = std::make_exception_ptr(OptionsDiffer(problem.what()));
    } catch (const PlatformError& problem) {
      error = std::make_exception_ptr(std::runtime_error(problem.what()));
    } catch (const UsageError& problem) {
      error = std::make_exception_ptr(std::runtime_error(problem.what()));
    } catch (...) {
      error = std::current_exception();
    }
    begun_ = {};  // destroys the promise, so that the constructor does not wait forever
    if (error != nullptr) {
      end_.set_exception(error);
    } else {
      end_.set_value();
    }
  }

  // The job is left by an exception, since the events for which its other tasks wait may never
  // come.
  static Task<> leave_job() {
    Executor::current().spawn([]() -> Task<> {
      throw Leave{};
      co_return;
    }());
    co_return;
  }

  Task<> until_connected() {
    if (!connected_) co_await wait(connecting_);
  }

  // Returns the record's number in the log once it is there.
  Task<std::uint64_t> put(std::shared_ptr<Request> request) {
    line_.push_back(request);
    co_await wait(request->out_of_line);
    co_return request->number;
  }

  // Called when the time for an append has passed. Throws unless the record is in the log after
  // all.
  Task<> give_up(std::shared_ptr<Request> request) {
    if (request->number != 0) co_return;
    const std::string text = fmt::format("a record is not in the log '{}' after {}{}; ", job_,
                                         in_seconds(append_timeout_), problem_);
    if (std::erase(line_, request) == 0) {
      throw TimedOut(text +
                         "it is under way, and the client goes on trying: do not append it "
                         "again with this client",
                     true);
    }
    request->out_of_line.wake_one();
    throw TimedOut(text + "it never will be, so append it again", false);
  }

  Task<> serve(Thread& thread) {
    begun_.set_value(host::current_thread_executor().inbox());
    for (;;) {
      const auto log = co_await connect(thread);
      problem_.clear();
      tail_ = log->tail();
      // The connection broke while a record was under way. Since only this client appends, the
      // record is in the log if and only if the log's last record has its number.
      if (under_way_ != nullptr && log->tail() == number_) finish();
      connected_ = true;
      connecting_.wake_all();
      co_await use(*log);
      problem_ = kNoAnswer;
    }
  }

  Task<std::unique_ptr<systems::remote_log::RemoteLog>> connect(Thread& thread) {
    for (;;) {
      try {
        co_return co_await systems::remote_log::RemoteLog::connect(
            thread, {library::kServer, library::kPort}, options_);
      } catch (const methods::NoAnswer&) {
        problem_ = kNoAnswer;  // the server has not started, or is gone
      } catch (const methods::RefusedForNow& problem) {
        const bool busy = problem.reason == methods::Rejection::Reason::busy;
        problem_ = busy ? ": its server still has another client" : ": its server is ending";
      } catch (const PlatformError& problem) {
        problem_ = fmt::format(": {}", problem.what());
      }
      co_await sleep_for(kBetweenAttempts);
    }
  }

  // Appends records until the connection ends.
  Task<> use(systems::remote_log::RemoteLog& log) {
    while (!log.is_over()) {
      if (!take_next()) {
        co_await host::until([&] { return !line_.empty() || log.is_over(); });
        continue;
      }
      number_ = log.tail() + 1;
      const auto number = co_await log.append(std::as_bytes(std::span(record_)));
      if (!number) co_return;
      tail_ = *number;
      finish();
    }
  }

  // Prepares the record that is to be sent: again the one that was under way when a connection
  // broke, or else the first in line. Returns false if there is none.
  bool take_next() {
    if (under_way_ != nullptr) return true;
    if (line_.empty()) return false;
    under_way_ = std::move(line_.front());
    line_.pop_front();
    record_.assign(under_way_->record);
    return true;
  }

  // Called when the record that was under way is in the log.
  void finish() {
    under_way_->number = number_;
    under_way_->out_of_line.wake_one();
    under_way_ = nullptr;
  }

  systems::remote_log::LogOptions options_;
  std::string job_;
  std::chrono::milliseconds connect_timeout_;
  std::chrono::milliseconds append_timeout_;
  ShmPlatform platform_;
  OsThread thread_;
  std::promise<std::shared_ptr<host::Inbox>> begun_;
  std::shared_ptr<host::Inbox> inbox_;  // null if the platform ended before its thread began
  std::promise<void> end_;
  std::shared_future<void> ended_ = end_.get_future().share();
  std::atomic<std::uint64_t> tail_{0};

  // The members from here on are used only by the platform's thread.
  std::deque<std::shared_ptr<Request>> line_;
  std::shared_ptr<Request> under_way_;
  std::string record_;        // a copy of the record that is under way
  std::uint64_t number_ = 0;  // the number of that record in the log
  bool connected_ = false;    // true if there has ever been a connection
  WaitList connecting_;
  std::string problem_ = kNoAnswer;  // why the server cannot be reached
};

LogClient::LogClient(const LogOptions& options) try : impl_(std::make_unique<Impl>(options)) {
} catch (const NodeRuns&) {
  throw std::runtime_error(fmt::format(
      "the log '{}' has a client already; end that one first, or append through it", options.job));
}
LogClient::~LogClient() = default;
std::uint64_t LogClient::append(std::string_view record) { return impl_->append(record); }
std::uint64_t LogClient::tail() const { return impl_->tail(); }
const std::string& LogClient::method() const { return impl_->method(); }

}  // namespace perdura
