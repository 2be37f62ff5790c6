#include "mount/mount.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "mount/ending_signals.h"
#include "mount/locks.h"
#include "mount/mount_options.h"
#include "mount/operations.h"
#include "mount/readers.h"
#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "platform/host/os_thread.h"
#include "platform/pmem/mapped/pool_file.h"
#include "platform/pmem/mapped/populate.h"

namespace perdura::mount {

namespace {

constexpr Picoseconds kBetweenLooks = Microseconds(100);
// Interval at which waiting threads look for the connection; meanwhile recovery needs the cores.
constexpr Picoseconds kBetweenConnectionLooks = Milliseconds(1);

// How long a mount waits for servers that do not take clients yet, and how often it tries.
constexpr Picoseconds kForServers = std::chrono::seconds(5);
constexpr Picoseconds kBetweenAttempts = Milliseconds(20);

// If many programs read or write at once, more threads than cores increase their throughput.
constexpr unsigned kThreadsOfCore = 4;
constexpr unsigned kMostThreads = 32;

// Lets Readers::kWake interrupt reads, as long as the object exists.
class WakingSignal {
 public:
  WakingSignal() {
    struct sigaction wake {};
    wake.sa_handler = [](int) {};
    sigaction(Readers::kWake, &wake, &before_);
  }
  ~WakingSignal() { sigaction(Readers::kWake, &before_, nullptr); }
  WakingSignal(const WakingSignal&) = delete;
  WakingSignal& operator=(const WakingSignal&) = delete;

 private:
  struct sigaction before_ {};
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

// Each thread takes a session of the servers, which have so many for all mounts.
constexpr unsigned kMostThreadsIfShared = 8;

unsigned usual_threads(bool is_shared) {
  return std::clamp(kThreadsOfCore * std::thread::hardware_concurrency(), 1U,
                    is_shared ? kMostThreadsIfShared : kMostThreads);
}

struct EndAtExit {
  std::stop_source& source;
  ~EndAtExit() { source.request_stop(); }
};

class Mount {
 public:
  Mount(const fs::FsSystem& system, const Source& source, const MountOptions& options)
      : system_(system),
        source_(source),
        options_(options),
        kernel_options_(parse_options(options.options)),
        access_(kernel_options_.read_only ? Access::private_copy : Access::in_place),
        access_times_(kernel_options_.notes_reads && !kernel_options_.read_only
                          ? AccessTimes::relative
                          : AccessTimes::none),
        threads_(options.threads > 0 ? options.threads : usual_threads(source.is_shared())) {
    source.prepare(access_);
    if (options.trace.empty()) return;
    if (kind_of(options.trace) == PathKind::file) {
      throw UsageError(fmt::format("--trace {}: exists already; give a new file", options.trace));
    }
    recorder_.emplace(options.trace);
  }

  void run() {
    const BlockedSignals blocked;
    const WakingSignal waking;
    const SignalThread signals([this] {
      readers_.end();
      while (readers_.wake()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    signals_ = &signals;
    const auto [platform, node] = source_.platform(access_);
    platform->start(node, 0, CompletionMode::event,
                    [this, on = platform.get()](Thread& thread) { return lead(thread, *on); });
    try {
      platform->run();
    } catch (...) {
      // These use the platform, so they must go before it.
      locks_.reset();
      connection_.reset();
      files_.reset();
      // A mount that nobody could use has no trace.
      if (recorder_ && !connected_) std::remove(options_.trace.c_str());
      throw;
    }
  }

 private:
  // The first thread mounts and unmounts. All others are started before, because a thread that
  // cannot be started would leave a directory that nobody serves; they sleep until there is a
  // connection.
  Task<> lead(Thread& thread, Platform& platform) {
    serving_ = threads_;
    for (std::uint32_t port = 1; port < threads_; ++port) {
      platform.start(thread.node.id(), static_cast<fabric::Port>(port), CompletionMode::event,
                     [this](Thread& other) { return follow(other); });
    }
    while (followers_ + 1 < threads_) co_await sleep_for(kBetweenLooks);
    fs::FsConfig config = source_.config();
    config.threads = threads_;
    config.now = time_now();
    config.read_only = source_.is_discarded(access_);
    co_await open_files(thread, config);
    if (source_.is_shared()) {
      locks_.emplace(thread.node, static_cast<fabric::Port>(threads_), files_);
      co_await locks_->begin();
    }
    has_files_ = true;
    const std::unique_ptr<fs::Session> session = co_await attach(thread);
    while (attached_ < threads_) co_await sleep_for(kBetweenLooks);
    if (problem_) std::rethrow_exception(problem_);
    // Print the damage, since nobody may look at the file system for weeks.
    if (const std::string damage = files_->damage(); !damage.empty()) {
      std::fputs(fmt::format("perdura: '{}': {}; perdura fs check --repair mends what can be\n",
                             source_.path(), damage)
                     .c_str(),
                 stderr);
    }
    // The file that the system has mapped.
    auto pool = std::make_shared<std::optional<pmem::mapped::PoolFile>>();
    if (const std::string file = source_.memory(access_); !file.empty()) {
      *pool = pmem::mapped::open_pool_file(file);
    }
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
    mark_ = source_.mark(access_);
    options_.ready();
    connected_ = true;
    co_await work(*session);
    while (serving_ > 0) co_await sleep_for(kBetweenLooks);
    if (locks_) co_await locks_->end();
    locks_.reset();
    connection_.reset();
    if (problem_) std::rethrow_exception(problem_);
    co_await files_->unmount();
    files_.reset();
    if (recorder_) recorder_->finish();
  }

  Task<> follow(Thread& thread) {
    ++followers_;
    while (!has_files_) co_await sleep_for(kBetweenConnectionLooks);
    const std::unique_ptr<fs::Session> session = co_await attach(thread);
    while (!connected_) co_await sleep_for(kBetweenConnectionLooks);
    co_await work(*session);
  }

  // Servers may be starting, or a mirror taking the place of one that has failed: they refuse
  // clients until they know who is to serve them.
  Task<> open_files(Thread& thread, const fs::FsConfig& config) {
    const Time until = thread.executor.now() + kForServers;
    for (;;) {
      std::exception_ptr problem;
      try {
        files_ = co_await system_.mount(thread, source_.name(), config);
        co_return;
      } catch (const PlatformError&) {
        problem = std::current_exception();
      }
      if (!source_.is_shared() || thread.executor.now() > until) std::rethrow_exception(problem);
      co_await sleep_for(kBetweenAttempts);
    }
  }

  // Connects the thread's session, if it needs servers: one that finds no room there later would
  // make some calls of programs fail.
  Task<std::unique_ptr<fs::Session>> attach(Thread& thread) {
    std::unique_ptr<fs::Session> session = files_->attach(thread);
    try {
      if (source_.is_shared()) co_await connect(*session);
    } catch (...) {
      note_problem();
    }
    ++attached_;
    co_return session;
  }

  void note_problem() {
    const std::scoped_lock lock(problem_mutex_);
    if (!problem_) problem_ = std::current_exception();
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

  Task<> work(fs::Session& session) {
    try {
      co_await answer_requests(session);
    } catch (...) {
      note_problem();
    }
    --serving_;
  }

  Task<> answer_requests(fs::Session& session) {
    Channel channel(*connection_);
    Handler handler(session, channel,
                    {source_.is_shared(), access_times_, readers_, releases_, listings_,
                     locks_ ? &*locks_ : nullptr, recorder_ ? &*recorder_ : nullptr});
    const Answering answering(*this);
    while (!readers_.ended()) {
      readers_.await_turn();
      const std::optional<Message> message = channel.receive();
      readers_.end_turn([&] { return channel.has_request(); });
      if (message) {
        readers_.begin_answer();
        // While the thread waited in the kernel it did not notice connections that broke.
        if (source_.is_shared()) co_await yield();
        co_await handle_one(handler, channel, *message);
        readers_.end_answer();
        // Lets background work of the system run.
        co_await yield();
      } else if (channel.is_unmounted()) {
        mark_.reset();
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
  const Source& source_;
  const MountOptions& options_;
  const KernelOptions kernel_options_;
  const Access access_;
  std::optional<File> mark_;
  AccessTimes access_times_;
  std::uint32_t threads_;
  Readers readers_;
  Releases releases_;
  Listings listings_;
  std::shared_ptr<fs::FileSystem> files_;
  std::optional<MountLocks> locks_;
  std::optional<fs::TraceRecorder> recorder_;
  std::optional<Connection> connection_;
  const SignalThread* signals_ = nullptr;
  std::atomic<bool> has_files_{false};
  std::atomic<std::uint32_t> attached_{0};  // threads that have a session
  std::atomic<bool> connected_{false};
  std::atomic<std::uint32_t> followers_{0};  // threads that have begun, without the first
  std::atomic<std::uint32_t> serving_{0};
  std::mutex problem_mutex_;
  std::exception_ptr problem_;  // the problem of the first thread that failed
};

}  // namespace

bool is_available() { return true; }

void serve(const fs::FsSystem& system, const Source& source, const MountOptions& options) {
  check_directory(options.directory);
  Mount(system, source, options).run();
}

}  // namespace perdura::mount
