#include "mount/mount.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "mount/mount_options.h"
#include "mount/operations.h"
#include "mount/readers.h"
#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "platform/host/os_thread.h"
#include "platform/pmem/mapped/populate.h"

namespace perdura::mount {

namespace {

constexpr Picoseconds kBetweenLooks = Microseconds(100);
// Interval at which waiting threads look for the connection; meanwhile recovery needs the cores.
constexpr Picoseconds kBetweenConnectionLooks = Milliseconds(1);

// If many programs read or write at once, more threads than cores increase their throughput.
constexpr unsigned kThreadsOfCore = 4;
constexpr unsigned kMostThreads = 32;

constexpr std::array<int, 3> kEnding{SIGINT, SIGTERM, SIGHUP};

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kEnding) sigaddset(&set, signal);
  return set;
}

// Ends the mount at a signal. The signals that end a program are blocked in all threads.
class SignalThread {
 public:
  explicit SignalThread(Readers& readers)
      : thread_([&readers] { run(readers); }), handle_(thread_.native_handle()) {}
  ~SignalThread() {
    end();
    thread_.join();
  }
  // Has the effect of the signal. May be called more than once.
  void end() const { pthread_kill(handle_, SIGTERM); }
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  static void run(Readers& readers) {
    const sigset_t signals = ending_signals();
    int signal = 0;
    sigwait(&signals, &signal);
    readers.end();
    while (readers.wake()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  OsThread thread_;
  pthread_t handle_;
};

// Blocks the ending signals; also ignores SIGPIPE, so that the process survives if nobody reads its
// output any more.
class BlockedSignals {
 public:
  BlockedSignals() {
    const sigset_t signals = ending_signals();
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
    struct sigaction wake {};
    wake.sa_handler = [](int) {};
    sigaction(Readers::kWake, &wake, &wake_before_);
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignored, &pipe_before_);
  }
  ~BlockedSignals() {
    sigaction(SIGPIPE, &pipe_before_, nullptr);
    sigaction(Readers::kWake, &wake_before_, nullptr);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
  struct sigaction wake_before_ {};
  struct sigaction pipe_before_ {};
};

void check_directory(const std::string& directory) {
  const PathKind kind = kind_of(directory);
  if (kind == PathKind::nothing) {
    throw UsageError(fmt::format("{}: there is no such directory", directory));
  }
  if (kind == PathKind::unknown) {
    throw UsageError(fmt::format("{}: {}", directory, not_a_folder(directory)));
  }
  if (kind != PathKind::folder) throw UsageError(fmt::format("{}: is not a directory", directory));
  if (!names_in(directory).empty())
    throw UsageError(fmt::format("{}: is not empty; mount on another", directory));
}

unsigned usual_threads() {
  return std::clamp(kThreadsOfCore * std::thread::hardware_concurrency(), 1U, kMostThreads);
}

struct EndAtExit {
  std::stop_source& source;
  ~EndAtExit() { source.request_stop(); }
};

class Mount {
 public:
  Mount(const fs::FsSystem& system, const MountSource& source, const MountOptions& options)
      : system_(system),
        source_(source),
        options_(options),
        kernel_options_(parse_options(options.options)),
        access_(kernel_options_.read_only ? Access::private_copy : Access::in_place),
        access_times_(kernel_options_.notes_reads && !kernel_options_.read_only
                          ? AccessTimes::relative
                          : AccessTimes::none),
        threads_(options.threads > 0 ? options.threads : usual_threads()) {
    wait_until_free(source, access_);
  }

  void run() {
    const BlockedSignals blocked;
    const SignalThread signals(readers_);
    signals_ = &signals;
    const auto platform = source_.platform(access_);
    platform->start(0, 0, CompletionMode::event,
                    [this, on = platform.get()](Thread& thread) { return lead(thread, *on); });
    try {
      platform->run();
    } catch (...) {
      // These use the platform, so they must go before it.
      connection_.reset();
      files_.reset();
      throw;
    }
  }

 private:
  // Returns true if the system's changes to memory are discarded.
  bool is_private() const { return access_ == Access::private_copy && !source_.is_in_device(); }

  // The first thread mounts and unmounts. All others are started before, because a thread that
  // cannot be started would leave a directory that nobody serves; they sleep until there is a
  // connection.
  Task<> lead(Thread& thread, Platform& platform) {
    serving_ = threads_;
    for (std::uint32_t port = 1; port < threads_; ++port) {
      platform.start(0, static_cast<fabric::Port>(port), CompletionMode::event,
                     [this](Thread& other) { return follow(other); });
    }
    while (followers_ + 1 < threads_) co_await sleep_for(kBetweenLooks);
    files_ = co_await system_.mount(
        thread, source_.name(),
        {.threads = threads_, .now = time_now(), .read_only = is_private(), .parameters = {}});
    // Print the damage, since nobody may look at the file system for weeks.
    if (const std::string damage = files_->damage(); !damage.empty()) {
      std::fputs(fmt::format("perdura: '{}': {}; perdura fs check --repair mends what can be\n",
                             source_.path(), damage)
                     .c_str(),
                 stderr);
    }
    // The file that the system has mapped. Pages of a private copy are not populated, as each would
    // be copied.
    auto pool = std::make_shared<std::optional<pmem::mapped::PoolFile>>();
    if (!is_private()) *pool = pmem::mapped::open_pool_file(source_.path());
    // If root mounts, other users may use the file system, with devices and set-user-ID unless the
    // options say otherwise.
    std::string options = geteuid() == 0 ? "allow_other,dev,suid," : "";
    options += "default_permissions";
    if (!kernel_options_.list.empty()) options += "," + kernel_options_.list;
    std::stop_source mounted;
    const OsThread populating([pool = std::move(pool), stop = mounted.get_token()] {
      if (*pool) pmem::mapped::populate(**pool, stop);
    });
    const EndAtExit end{mounted};
    connection_.emplace(ConnectionOptions{.directory = options_.directory,
                                          .source = source_.path(),
                                          .type = "perdura-" + std::string(system_.info.name),
                                          .options = options,
                                          .given = options_.options,
                                          .no_symbolic_links = kernel_options_.no_symbolic_links},
                        operations());
    mark_.begin(source_, access_);
    options_.ready();
    connected_ = true;
    co_await work(thread);
    while (serving_ > 0) co_await sleep_for(kBetweenLooks);
    connection_.reset();
    if (problem_) std::rethrow_exception(problem_);
    co_await files_->unmount();
    files_.reset();
  }

  Task<> follow(Thread& thread) {
    ++followers_;
    while (!connected_) co_await sleep_for(kBetweenConnectionLooks);
    co_await work(thread);
  }

  // Marks a thread that answers requests. If it fails, the mount ends: the other threads may be
  // waiting in the kernel for requests, and programs for answers that no thread will give.
  class Answering {
   public:
    explicit Answering(Mount& mount) : mount_(mount) { mount_.readers_.enter(); }
    ~Answering() {
      mount_.readers_.leave();
      if (!mount_.readers_.ended()) mount_.signals_->end();
    }
    Answering(const Answering&) = delete;
    Answering& operator=(const Answering&) = delete;

   private:
    Mount& mount_;
  };

  Task<> work(Thread& thread) {
    try {
      co_await answer_requests(thread);
    } catch (...) {
      const std::scoped_lock lock(problem_mutex_);
      if (!problem_) problem_ = std::current_exception();
    }
    --serving_;
  }

  Task<> answer_requests(Thread& thread) {
    const auto session = files_->attach(thread);
    Channel channel(*connection_);
    Handler handler(*session, channel, access_times_, readers_, releases_, listings_);
    const Answering answering(*this);
    while (!readers_.ended()) {
      readers_.await_turn();
      const std::optional<Message> message = channel.receive();
      readers_.end_turn([&] { return channel.has_request(); });
      if (message) {
        readers_.begin_answer();
        co_await handle_one(handler, channel, *message);
        readers_.end_answer();
        // Lets background work of the system run.
        co_await yield();
      } else if (channel.is_unmounted()) {
        mark_.end();
        readers_.end();
      }
    }
  }

  // If there is no task, the request has been answered already.
  static Task<> handle_one(Handler& handler, Channel& channel, Message message) {
    Task<> task = handle(handler, channel, message);
    if (task.handle()) co_await std::move(task);
  }

  const fs::FsSystem& system_;
  const MountSource& source_;
  const MountOptions& options_;
  const KernelOptions kernel_options_;
  const Access access_;
  MountMark mark_;
  AccessTimes access_times_;
  std::uint32_t threads_;
  Readers readers_;
  Releases releases_;
  Listings listings_;
  std::shared_ptr<fs::FileSystem> files_;
  std::optional<Connection> connection_;
  const SignalThread* signals_ = nullptr;
  std::atomic<bool> connected_{false};
  std::atomic<std::uint32_t> followers_{0};  // threads that have begun, without the first
  std::atomic<std::uint32_t> serving_{0};
  std::mutex problem_mutex_;
  std::exception_ptr problem_;  // the problem of the first thread that failed
};

}  // namespace

bool is_available() { return true; }

void serve(const fs::FsSystem& system, const MountSource& source, const MountOptions& options) {
  check_directory(options.directory);
  Mount(system, source, options).run();
}

}  // namespace perdura::mount
