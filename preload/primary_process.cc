#include "preload/primary_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "platform/base/error.h"
#include "platform/base/limits.h"
#include "platform/base/path_kind.h"
#include "platform/host/thread_executor.h"
#include "preload/call_watcher.h"
#include "preload/execution.h"
#include "preload/reader_processes.h"
#include "preload/requests.h"
#include "preload/sent_contents.h"
#include "preload/start_report.h"

namespace perdura::preload {

namespace fs = std::filesystem;
using services::MemoryRange;
using services::SyncError;

namespace {

constexpr Milliseconds kLookForPrograms{50};

// Tells whether calls have written to a file: write(2), truncate(2) and all others, by any process,
// but not stores to mappings.
class Writes {
 public:
  // Tells of calls from now on.
  explicit Writes(const std::string& file) : events_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    is_known_ = events_ >= 0 && inotify_add_watch(events_, file.c_str(), IN_MODIFY) >= 0;
  }
  ~Writes() {
    if (events_ >= 0) close(events_);
  }
  Writes(const Writes&) = delete;
  Writes& operator=(const Writes&) = delete;
  // True if there have been any since this was called last, or if the kernel has no room for
  // another watch.
  bool have_been_made() {
    bool are_there = !is_known_;
    std::array<char, 4096> events;
    while (is_known_ && read(events_, events.data(), events.size()) > 0) are_there = true;
    return are_there;
  }

 private:
  int events_;
  bool is_known_;
};

struct Failure {
  int error = 0;  // an errno
  std::string why;
};

class Primary {
 public:
  explicit Primary(Cluster cluster) : cluster_(std::move(cluster)) { make_requests(); }
  void serve(const std::function<void()>& serves);

 private:
  const std::string& path() const { return cluster_.files.front(); }
  void make_requests();
  void wait_until_used();
  void begin();
  Task<> be_primary(Thread& thread);
  Task<> serve_requests();
  Task<std::optional<Failure>> perform(const SyncRequest& request);
  void note(std::span<const MemoryRange> ranges, bool is_done);
  Task<std::optional<SyncError>> send(std::vector<MemoryRange> changed, Atomicity atomicity);
  std::optional<Failure> check_file();
  void tell_of_lost_copies();
  bool is_alone() const;
  static void answer(SyncRequest& request, const std::optional<Failure>& failure);
  template <class Function>
  void for_each_posted(Function function);

  Cluster cluster_;
  const pid_t parent_ = getppid();
  SharedRequests* shared_ = nullptr;
  std::optional<ReaderProcesses> readers_;  // readers from the time when the file was a copy
  std::unique_ptr<ShmPlatform> platform_;
  std::shared_ptr<services::MemoryReplica> replica_;
  std::unique_ptr<services::MappedMemory> mapped_;
  std::optional<Writes> writes_;
  std::optional<SentContents> contents_;
  std::vector<MemoryRange> failed_;  // ranges whose sync failed and that none has sent since
  std::vector<bool> lost_;           // by node: its loss has been reported
  std::function<void()> serves_;     // to be called when the file is mapped; or empty
};

void Primary::make_requests() {
  const std::string path = requests_file(this->path());
  std::error_code error;
  fs::create_directory(state_folder(this->path()), error);
  const auto fail = [&] {
    throw PlatformError(fmt::format("{}: cannot be made: {}", path, std::strerror(errno)));
  };
  // Make a new file: processes of a run that was killed may still use the former one.
  const std::string made = fmt::format("{}.{}", path, getpid());
  const int descriptor = open(made.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0) fail();
  // The descriptor stays open as long as this process lives, and so the lock stays.
  struct flock whole {};
  whole.l_type = F_WRLCK;
  if (fcntl(descriptor, F_OFD_SETLK, &whole) != 0 ||
      posix_fallocate(descriptor, 0, sizeof(SharedRequests)) != 0) {
    fail();
  }
  void* const memory =
      mmap(nullptr, sizeof(SharedRequests), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED || rename(made.c_str(), path.c_str()) != 0) fail();
  shared_ = static_cast<SharedRequests*>(memory);
  shared_->version = SharedRequests::kVersion;
}

template <class Function>
void Primary::for_each_posted(Function function) {
  for (SyncRequest& request : shared_->requests) {
    if (request.state.load(std::memory_order_acquire) == SyncRequest::posted) function(request);
  }
}

void Primary::answer(SyncRequest& request, const std::optional<Failure>& failure) {
  request.error = failure ? failure->error : 0;
  std::memset(request.why, 0, sizeof request.why);
  if (failure) {
    std::memcpy(request.why, failure->why.data(),
                std::min(failure->why.size(), sizeof request.why - 1));
  }
  request.state.store(SyncRequest::answered, std::memory_order_release);
  wake_all(request.state);
}

// True if the process that has started this one and all programs are gone.
bool Primary::is_alone() const {
  if (getppid() == parent_) return false;
  return std::none_of(std::begin(shared_->processes), std::end(shared_->processes),
                      [](const auto& process) {
                        const std::int32_t id = process.load(std::memory_order_relaxed);
                        return id != 0 && is_alive(id);
                      });
}

void Primary::serve(const std::function<void()>& serves) {
  // ^C is for the programs; this process ends after them.
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP, SIGTERM}) std::signal(signal, SIG_IGN);
  if (is_there(path()) && is_there(fs::path(state_folder(path())) / kRegion)) {
    serves_ = serves;  // called once the file is as it was last synced
    begin();
  } else {
    serves();
    wait_until_used();
  }
  try {
    platform_->run();
  } catch (const std::exception& error) {
    const Failure failure{EIO, problem_text(error)};
    for_each_posted([&](SyncRequest& request) { answer(request, failure); });
    throw;
  }
}

void Primary::wait_until_used() {
  for (;;) {
    const std::uint32_t seen = shared_->work.load();
    bool is_used = false;
    for_each_posted([&](SyncRequest& request) {
      if (request.kind == SyncRequest::begin) {
        is_used = true;
      } else {
        answer(request, std::nullopt);  // nothing has been replicated, so nothing is missing
      }
    });
    if (is_used) {
      try {
        return begin();
      } catch (const std::exception& error) {
        const Failure failure{ENOMEM, problem_text(error)};
        for_each_posted([&](SyncRequest& request) { answer(request, failure); });
      }
    }
    if (is_alone()) _exit(0);
    wait_while(shared_->work, seen, kLookForPrograms);
  }
}

void Primary::begin() {
  prepare_files(cluster_, 0);
  readers_.emplace(path(), ReaderProcesses::Role::primary);
  platform_ = join(cluster_, {0});
  platform_->start(0, 0, CompletionMode::polling,
                   [this](Thread& thread) { return be_primary(thread); });
}

Task<> Primary::be_primary(Thread& thread) {
  replica_ = cluster_.system().open(thread, kRegion, cluster_.config(), cluster_.role(0));
  lost_.resize(cluster_.files.size());
  mapped_ = co_await replica_->map(thread);
  writes_.emplace(path());
  contents_.emplace(std::span(mapped_->region().data(), cluster_.size));
  struct stat found {};
  if (stat(path().c_str(), &found) != 0) {
    throw PlatformError(fmt::format("{}: {}", path(), std::strerror(errno)));
  }
  shared_->device = found.st_dev;
  shared_->inode = found.st_ino;
  shared_->size = cluster_.size;
  shared_->begun.store(1, std::memory_order_release);
  if (serves_) serves_();
  auto& executor = static_cast<host::ThreadExecutor&>(thread.executor);
  for (;;) {
    const std::uint32_t seen = shared_->work.load();
    co_await serve_requests();
    const bool is_asked =
        co_await host::until([&] { return shared_->work.load(std::memory_order_relaxed) != seen; },
                             executor.now() + kLookForPrograms);
    // As after a power failure: what no program has synced is given up.
    if (!is_asked && is_alone()) _exit(0);
  }
}

Task<> Primary::serve_requests() {
  for (SyncRequest& request : shared_->requests) {
    if (request.state.load(std::memory_order_acquire) != SyncRequest::posted) continue;
    const std::optional<Failure> failure = co_await perform(request);
    if (request.kind == SyncRequest::sync) {
      note(std::span(request.ranges, request.count), !failure.has_value());
    }
    answer(request, failure);
  }
}

// Keeps track of failed syncs, so that a program which ignores the result of its sync does not end
// as if all were well.
void Primary::note(std::span<const MemoryRange> ranges, bool is_done) {
  const auto covers = [](const MemoryRange& range, const MemoryRange& other) {
    return range.offset <= other.offset &&
           other.offset + other.length <= range.offset + range.length;
  };
  for (const MemoryRange& range : ranges) {
    std::erase_if(failed_, [&](const MemoryRange& other) { return covers(range, other); });
    if (!is_done) failed_.push_back(range);
    if (is_done && covers(range, {0, cluster_.size})) shared_->refused = 0;
  }
  shared_->failed = failed_.empty() ? 0 : 1;
}

// Fails if the name stands for another file now, or if the file has grown. One that was truncated
// is given its size again, since the mapping does not follow.
std::optional<Failure> Primary::check_file() {
  struct stat found {};
  if (stat(path().c_str(), &found) != 0 || found.st_ino != shared_->inode ||
      found.st_dev != shared_->device) {
    return Failure{EIO, fmt::format("{} is another file than the one that is replicated: it has "
                                    "been removed, renamed, or made again",
                                    path())};
  }
  const auto size = static_cast<Bytes>(found.st_size);
  if (size > cluster_.size) {
    return Failure{EFBIG, fmt::format("{} has grown to {} bytes, and {} are replicated; raise "
                                      "--size",
                                      path(), size, cluster_.size)};
  }
  if (size == cluster_.size) return std::nullopt;
  // It has been truncated: give it its size again, with zeros.
  const int descriptor = open(path().c_str(), O_RDWR | O_CLOEXEC);
  const int problem =
      descriptor < 0 ? errno : posix_fallocate(descriptor, 0, static_cast<off_t>(cluster_.size));
  if (descriptor >= 0) close(descriptor);
  if (problem == 0) return std::nullopt;
  return Failure{EIO, fmt::format("{} has been truncated to {} bytes, and cannot get its size "
                                  "again: {}",
                                  path(), size, std::strerror(problem))};
}

Task<std::optional<Failure>> Primary::perform(const SyncRequest& request) {
  if (request.kind == SyncRequest::begin) co_return std::nullopt;
  if (auto failure = check_file()) co_return failure;
  const MemoryRange all{0, cluster_.size};
  const std::span<const MemoryRange> ranges = request.kind == SyncRequest::settle
                                                  ? std::span(&all, 1)
                                                  : std::span(request.ranges, request.count);
  std::span<const MemoryRange> places = ranges;
  if (request.where != static_cast<std::uint32_t>(Where::ranges)) {
    const bool is_all =
        writes_->have_been_made() || request.where == static_cast<std::uint32_t>(Where::everywhere);
    places = is_all ? std::span(&all, 1) : std::span(request.changed, request.changed_count);
  }
  for (const MemoryRange& place : places) contents_->look(place);
  std::vector<MemoryRange> changed = contents_->take_unsent(ranges);
  std::optional<SyncError> problem;
  if (!changed.empty()) {
    problem = co_await send(std::move(changed), static_cast<Atomicity>(request.atomicity));
  }
  if (problem) {
    co_return Failure{*problem == SyncError::too_large ? ENOSPC : EIO,
                      fmt::format("a sync point failed: {}", to_string(*problem))};
  }
  contents_->note_sent();
  if (request.kind == SyncRequest::settle) co_await mapped_->settle();
  co_return std::nullopt;
}

// Reports copies that were lost, before the program learns that its sync point is safe without
// them: a user who promotes such a copy must know.
void Primary::tell_of_lost_copies() {
  for (NodeId node = 1; node < lost_.size(); ++node) {
    if (lost_[node] || !replica_->has_lost(node)) continue;
    lost_[node] = true;
    std::cerr << fmt::format(
        "perdura mojim: {} does not answer; the program goes on without it, and the next run gives "
        "it the file\n",
        cluster_.files[node]);
  }
}

Task<std::optional<SyncError>> Primary::send(std::vector<MemoryRange> changed,
                                             Atomicity atomicity) {
  const auto whole = co_await mapped_->sync(changed);
  tell_of_lost_copies();
  if (whole) co_return std::nullopt;
  if (whole.error() != SyncError::too_large || atomicity == Atomicity::required) {
    co_return whole.error();
  }
  // Send parts one after the other: Linux promises a program that calls msync no more than that.
  constexpr Bytes kPart = 1 * MiB;  // fits into a log
  for (const MemoryRange& range : changed) {
    for (Bytes sent = 0; sent < range.length; sent += kPart) {
      const MemoryRange part{range.offset + sent, std::min(kPart, range.length - sent)};
      const auto of_part = co_await mapped_->sync(part);
      tell_of_lost_copies();
      if (!of_part) co_return of_part.error();
    }
  }
  co_return std::nullopt;
}

}  // namespace

void serve_primary(const Cluster& cluster, int calls, const std::function<void()>& serves) {
  Primary primary(cluster);
  watch_calls(cluster.files.front(), calls);
  primary.serve(serves);
}

PrimaryProcess::PrimaryProcess(const Cluster& cluster, const std::string& program, int life)
    : file_(cluster.files.front()) {
  try {
    start(cluster, program, life);
  } catch (...) {
    end();
    throw;
  }
}

PrimaryProcess::~PrimaryProcess() { end(); }

void PrimaryProcess::start(const Cluster& cluster, const std::string& program, int life) {
  std::array<int, 2> said{};
  std::array<int, 2> calls{};
  if (pipe2(said.data(), O_CLOEXEC) != 0) {
    throw PlatformError(fmt::format("pipe: {}", std::strerror(errno)));
  }
  const pmem::mapped::File reports(said[0]);
  pmem::mapped::File its_reports(said[1]);
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, calls.data()) != 0) {
    throw PlatformError(fmt::format("socketpair: {}", std::strerror(errno)));
  }
  calls_ = pmem::mapped::File(calls[0]);
  pmem::mapped::File its_calls(calls[1]);
  fcntl(its_reports.get(), F_SETFD, 0);
  fcntl(its_calls.get(), F_SETFD, 0);
  const std::vector<std::string> environment = environment_with(cluster.environment());
  const std::vector<std::string> words{program, "mojim", "primary",
                                       fmt::to_string(its_reports.get()),
                                       fmt::to_string(its_calls.get())};
  pid_t process = 0;
  fcntl(life, F_SETFD, 0);
  const int problem = posix_spawn(&process, program.c_str(), nullptr, nullptr,
                                  pointers(words).data(), pointers(environment).data());
  fcntl(life, F_SETFD, FD_CLOEXEC);
  if (problem != 0) throw PlatformError(fmt::format("{}: {}", program, std::strerror(problem)));
  process_ = process;
  its_reports = {};
  its_calls = {};
  const std::string why = why_not_serving(reports.get(), 1, "the process of the primary");
  if (!why.empty()) throw PlatformError(why);
}

void PrimaryProcess::end() {
  calls_ = {};
  if (process_ == 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = 0;
}

bool PrimaryProcess::is_used() const { return Requests(file_).uses() != 0; }

bool PrimaryProcess::settle() {
  const Requests::Answer answer = Requests(file_).ask({.kind = SyncRequest::settle});
  if (answer.error == 0) return true;
  std::cerr << fmt::format("perdura mojim: {}\n", answer.why);
  return false;
}

}  // namespace perdura::preload
