#include "preload/call_watcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <poll.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "platform/base/error.h"
#include "platform/base/limits.h"
#include "platform/host/os_thread.h"
#include "preload/call_filter.h"
#include "preload/mappings.h"
#include "preload/requests.h"

namespace perdura::preload {

using services::MemoryRange;

namespace {

// The errno with which a call fails; 0: the kernel carries it out.
using Error = int;

void say(const std::string& line) { std::cerr << fmt::format("perdura mojim: {}\n", line); }

class CallWatcher {
 public:
  CallWatcher(std::string file, int held) : file_(std::move(file)), requests_(file_), held_(held) {}
  ~CallWatcher() { close(held_); }
  CallWatcher(const CallWatcher&) = delete;
  CallWatcher& operator=(const CallWatcher&) = delete;
  void watch();

 private:
  // A call that a thread of a program has made. If the thread has ended meanwhile, the answer goes
  // nowhere, even if a new thread has got its number.
  struct Call {
    int thread;
    int number;
    std::uint64_t instruction;
    std::array<std::uint64_t, 6> arguments;
    int descriptor(std::size_t which) const { return static_cast<int>(arguments.at(which)); }
    // A name for the file that is open in the thread as this descriptor.
    std::string name_of(int descriptor) const {
      return fmt::format("/proc/{}/fd/{}", thread, descriptor);
    }
  };

  Error look_at(const Call& call);
  Error sync_file(const Call& call);
  Error sync_memory(const Call& call);
  Error map(const Call& call);
  Error open_synchronously(const Call& call, int folder, std::uint64_t name, std::uint64_t flags);
  Error open2(const Call& call);
  Error sync(const Call& call, std::span<const MemoryRange> ranges);
  Error sync_all(const Call& call);
  Error use(const Call& call);
  Error ask(const Requests::Question& question);
  bool is_file(const std::string& name) const;
  std::uint64_t inode() const;

  const std::string file_;
  Requests requests_;
  int held_;
};

// If this process may not look, as into a program with PR_SET_DUMPABLE, it assumes that the name is
// the file's: to sync once too often loses nothing.
bool CallWatcher::is_file(const std::string& name) const {
  struct stat its {};
  if (stat(name.c_str(), &its) != 0) return errno == EACCES || errno == EPERM;
  if (requests_.has_begun()) return requests_.is(its.st_dev, its.st_ino);
  struct stat ours {};
  return stat(file_.c_str(), &ours) == 0 && ours.st_ino == its.st_ino && ours.st_dev == its.st_dev;
}

std::uint64_t CallWatcher::inode() const {
  if (requests_.has_begun()) return requests_.inode();
  struct stat ours {};
  return stat(file_.c_str(), &ours) == 0 ? ours.st_ino : 0;
}

Error CallWatcher::ask(const Requests::Question& question) {
  const Requests::Answer answer = requests_.ask(question);
  if (answer.error != 0) say(answer.why);
  return answer.error;
}

// The number of the process that has this thread.
pid_t process_of(int thread) {
  std::ifstream status(fmt::format("/proc/{}/status", thread));
  for (std::string word; status >> word;) {
    if (word != "Tgid:") continue;
    pid_t process = 0;
    status >> process;
    return process;
  }
  return thread;
}

Error CallWatcher::use(const Call& call) {
  requests_.add_process(process_of(call.thread));
  return requests_.has_begun() ? 0 : ask({.kind = SyncRequest::begin});
}

Error CallWatcher::sync(const Call& call, std::span<const MemoryRange> ranges) {
  if (const Error problem = use(call); problem != 0) return problem;
  return ask({.ranges = ranges});
}

Error CallWatcher::sync_all(const Call& call) {
  if (const Error problem = use(call); problem != 0) return problem;
  const MemoryRange all{0, requests_.size()};
  return ask({.ranges = {&all, 1}});
}

// Fails for another file, too, if the name is no longer that of the replicated one: a file that a
// program has made to take its place is not replicated.
Error CallWatcher::sync_file(const Call& call) {
  if (is_file(call.name_of(call.descriptor(0)))) return sync_all(call);
  if (!requests_.has_begun() || is_file(file_)) return 0;
  say(
      fmt::format("{} is another file than the one that is replicated: it has been removed, "
                  "renamed, or made again",
                  file_));
  return EIO;
}

Error CallWatcher::sync_memory(const Call& call) {
  std::array<MemoryRange, 64> ranges;
  const FoundParts found =
      find_parts(call.arguments[0], call.arguments[1], inode(), ranges, call.thread);
  if (found.is_unknown) return requests_.has_begun() ? sync_all(call) : 0;
  return found.count == 0 ? 0 : sync(call, {ranges.data(), found.count});
}

Error CallWatcher::map(const Call& call) {
  const int flags = call.descriptor(3);
  if (!is_file(call.name_of(call.descriptor(4)))) return 0;
  // A program that gets such a mapping would not call msync.
  if ((flags & MAP_TYPE) == MAP_SHARED_VALIDATE && (flags & MAP_SYNC) != 0) return EOPNOTSUPP;
  if (const Error problem = use(call); problem != 0) return problem;
  const Bytes length = call.arguments[1];
  const Bytes offset = call.arguments[5];
  if (offset <= requests_.size() && length <= requests_.size() - offset) return 0;
  say(fmt::format("the program maps {} bytes of {} at {}, and the region has {}; raise --size",
                  length, file_, offset, requests_.size()));
  return ENOMEM;
}

// The preloaded library sees a call if it is in the process and the C library makes the call.
bool passes_library(int thread, std::uint64_t instruction) {
  std::ifstream maps(fmt::format("/proc/{}/maps", thread));
  bool has_library = false;
  bool is_of_c = false;
  for (std::string line; std::getline(maps, line);) {
    has_library |= line.find("/libperdura_mojim.so") != std::string::npos;
    std::istringstream words(line);
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    char between = 0;
    words >> std::hex >> begin >> between >> end;
    if (instruction >= begin && instruction < end) {
      is_of_c = line.find("/libc.so") != std::string::npos;
    }
  }
  return has_library && is_of_c;
}

std::optional<std::string> text_of(int thread, std::uint64_t address) {
  std::string text;
  for (char one = 0; text.size() < 4096; text += one) {
    iovec here{&one, 1};
    iovec there{reinterpret_cast<void*>(address + text.size()), 1};
    if (process_vm_readv(thread, &here, 1, &there, 1, 0) != 1) return std::nullopt;
    if (one == '\0') return text;
  }
  return std::nullopt;
}

Error CallWatcher::open_synchronously(const Call& call, int folder, std::uint64_t name,
                                      std::uint64_t flags) {
  if ((flags & O_DSYNC) == 0) return 0;
  const auto text = text_of(call.thread, name);
  if (text) {
    const std::string before = text->starts_with('/') ? fmt::format("/proc/{}/root", call.thread)
                               : folder == AT_FDCWD   ? fmt::format("/proc/{}/cwd/", call.thread)
                                                      : call.name_of(folder) + "/";
    if (!is_file(before + *text)) return 0;
  }
  if (passes_library(call.thread, call.instruction)) return 0;
  say(
      fmt::format("a program opens {} such that each write is synced (O_SYNC, O_DSYNC), by a call "
                  "that does not pass the C library; it must call fsync",
                  text.value_or("a file")));
  return EINVAL;
}

Error CallWatcher::open2(const Call& call) {
  open_how how{};
  iovec here{&how, sizeof how.flags};
  iovec there{reinterpret_cast<void*>(call.arguments[2]), sizeof how.flags};
  if (process_vm_readv(call.thread, &here, 1, &there, 1, 0) != sizeof how.flags) how.flags = O_SYNC;
  return open_synchronously(call, call.descriptor(0), call.arguments[1], how.flags);
}

Error CallWatcher::look_at(const Call& call) {
  switch (call.number) {
    case SYS_fsync:
    case SYS_fdatasync:
      return sync_file(call);
    case SYS_sync_file_range:
      return is_file(call.name_of(call.descriptor(0))) ? sync_all(call) : 0;
    case SYS_syncfs:
      return requests_.has_begun() ? sync_all(call) : 0;
    case SYS_sync:
      // sync(2) cannot fail, so an error is only reported in a line.
      if (requests_.has_begun()) sync_all(call);
      return 0;
    case SYS_msync:
      return sync_memory(call);
    case SYS_mmap:
      return map(call);
    case SYS_open:
      return open_synchronously(call, AT_FDCWD, call.arguments[0], call.arguments[1]);
    case SYS_openat:
      return open_synchronously(call, call.descriptor(0), call.arguments[1], call.arguments[2]);
    case SYS_openat2:
      return open2(call);
    case SYS_pwritev2:
      return is_file(call.name_of(call.descriptor(0))) ? EOPNOTSUPP : 0;
    default:
      return 0;
  }
}

void CallWatcher::watch() {
  seccomp_notif* notice = nullptr;
  seccomp_notif_resp* answer = nullptr;
  if (seccomp_notify_alloc(&notice, &answer) != 0) return;
  for (;;) {
    pollfd is_there{held_, POLLIN, 0};
    if (poll(&is_there, 1, -1) < 0 && errno == EINTR) continue;
    if ((is_there.revents & POLLIN) == 0) break;  // all programs have ended
    std::memset(notice, 0, sizeof *notice);
    // The caller may have ended, or a signal interrupted its call.
    if (seccomp_notify_receive(held_, notice) != 0) continue;
    Call call{static_cast<int>(notice->pid), notice->data.nr, notice->data.instruction_pointer, {}};
    std::copy(std::begin(notice->data.args), std::end(notice->data.args), call.arguments.begin());
    std::memset(answer, 0, sizeof *answer);
    answer->id = notice->id;
    try {
      answer->error = -look_at(call);
    } catch (const std::exception& error) {
      say(problem_text(error));
      answer->error = -EIO;
    }
    if (answer->error == 0) answer->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    seccomp_notify_respond(held_, answer);
  }
  seccomp_notify_free(notice, answer);
}

}  // namespace

void watch_calls(const std::string& file, int socket) {
  OsThread(
      [file, socket] {
        const int held = receive_held_calls(socket);
        close(socket);
        if (held >= 0) CallWatcher(file, held).watch();
      },
      ThreadSignals::blocked)
      .detach();
}

}  // namespace perdura::preload
