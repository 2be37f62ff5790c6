#include "preload/requests.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "platform/base/error.h"
#include "platform/fabric/shm/job.h"

namespace perdura::preload {

using services::MemoryRange;

namespace {

constexpr Milliseconds kLookForPrimary{100};
constexpr int kLooksBeforeWaiting = 300;

// Files are opened by direct system calls, since the preloaded library replaces these functions.
int open_now(const char* path, int flags) {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC));
}
void close_now(int descriptor) { syscall(SYS_close, descriptor); }

}  // namespace

void wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, 1 << 30, nullptr, nullptr, 0);
}

void wait_while(std::atomic<std::uint32_t>& word, std::uint32_t seen, Milliseconds most) {
  const auto milliseconds = most.count();
  const timespec time{milliseconds / 1000, milliseconds % 1000 * 1000000};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &time, nullptr, 0);
}

bool is_alive(std::int32_t process) {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/%d/stat", process);
  const int descriptor = open_now(path, O_RDONLY);
  if (descriptor < 0) return false;
  char text[200];
  const long length = syscall(SYS_read, descriptor, text, sizeof text - 1);
  close_now(descriptor);
  if (length <= 0) return false;
  text[length] = '\0';
  const char* const end = std::strrchr(text, ')');  // the end of the process's name
  return end == nullptr || end + 2 >= text + length || (end[2] != 'Z' && end[2] != 'X');
}

Requests::Requests(const std::string& file) : path_(requests_file(file)) {
  const int descriptor = open_now(path_.c_str(), O_RDWR);
  struct stat found {};
  void* memory = MAP_FAILED;
  if (descriptor >= 0 && fstat(descriptor, &found) == 0 &&
      static_cast<std::size_t>(found.st_size) >= sizeof(SharedRequests)) {
    memory = reinterpret_cast<void*>(syscall(SYS_mmap, nullptr, sizeof(SharedRequests),
                                             PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0L));
  }
  if (descriptor >= 0) close_now(descriptor);
  if (memory == MAP_FAILED) {
    throw PlatformError(
        fmt::format("{}: cannot be used; start the program with 'perdura mojim run'", path_));
  }
  shared_ = static_cast<SharedRequests*>(memory);
}

// True if the primary is there: it keeps the file locked.
bool Requests::has_primary() const {
  const int descriptor = open_now(path_.c_str(), O_RDWR);
  if (descriptor < 0) return false;
  const bool is_there = fabric::shm::is_locked(descriptor);
  close_now(descriptor);
  return is_there;
}

void Requests::add_process(std::int32_t process) {
  for (auto& place : shared_->processes) {
    if (place.load(std::memory_order_relaxed) == process) return;
  }
  shared_->uses.fetch_add(1, std::memory_order_relaxed);
  for (auto& place : shared_->processes) {
    std::int32_t other = place.load(std::memory_order_relaxed);
    if ((other == 0 || !is_alive(other)) && place.compare_exchange_strong(other, process)) return;
  }
}

bool Requests::has_used(std::int32_t process) const {
  return std::any_of(std::begin(shared_->processes), std::end(shared_->processes),
                     [&](const auto& place) { return place.load() == process; });
}

// Waits for a free slot. Null if the primary has gone.
SyncRequest* Requests::take() {
  for (;;) {
    for (SyncRequest& request : shared_->requests) {
      std::uint32_t state = SyncRequest::free;
      if (request.state.compare_exchange_strong(state, SyncRequest::taken)) return &request;
      // The process that has asked may have been killed since.
      if (state != SyncRequest::answered || is_alive(request.process)) continue;
      if (request.state.compare_exchange_strong(state, SyncRequest::taken)) return &request;
    }
    if (!has_primary()) return nullptr;
    sched_yield();
  }
}

Requests::Answer Requests::ask(const Question& question) {
  Answer answer;
  const auto fail = [&](int error, const char* why) {
    answer.error = error;
    std::strncpy(answer.why, why, sizeof answer.why - 1);
    return answer;
  };
  if (question.ranges.size() > SyncRequest::kMostRanges) {
    note_refused();
    return fail(ENOSPC, "a sync point of more than 1024 ranges is refused");
  }
  constexpr const char* kGone = "the process of the primary has ended, so nothing is replicated";
  SyncRequest* const request = take();
  if (request == nullptr) return fail(EIO, kGone);
  request->process = static_cast<std::int32_t>(syscall(SYS_getpid));
  request->kind = question.kind;
  request->atomicity = static_cast<std::uint32_t>(question.atomicity);
  request->where = static_cast<std::uint32_t>(question.where);
  request->count = static_cast<std::uint32_t>(question.ranges.size());
  std::copy(question.ranges.begin(), question.ranges.end(), request->ranges);
  request->changed_count = static_cast<std::uint32_t>(question.changed.size());
  std::copy(question.changed.begin(), question.changed.end(), request->changed);
  request->state.store(SyncRequest::posted, std::memory_order_release);
  shared_->work.fetch_add(1);
  wake_all(shared_->work);
  for (int looks = 0; request->state.load(std::memory_order_acquire) == SyncRequest::posted;) {
    if (++looks < kLooksBeforeWaiting) {
      __builtin_ia32_pause();
      continue;
    }
    wait_while(request->state, SyncRequest::posted, kLookForPrimary);
    if (request->state.load(std::memory_order_acquire) == SyncRequest::posted && !has_primary()) {
      request->state.store(SyncRequest::free);
      return fail(EIO, kGone);
    }
  }
  answer.error = request->error;
  std::memcpy(answer.why, request->why, sizeof answer.why);
  request->state.store(SyncRequest::free, std::memory_order_release);
  return answer;
}

}  // namespace perdura::preload
