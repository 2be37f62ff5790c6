#include "preload/shared_readers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <thread>
#include <utility>

#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "preload/state_folder.h"

namespace perdura::preload {

namespace {

constexpr int kNumberBits = 22;  // a process number has at most so many bits (the kernel's limit)

// Reads a file of /proc, up to the size of the buffer.
template <std::size_t size>
std::string_view read_whole(const char* path, std::array<char, size>& buffer) {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  const ssize_t length = read(descriptor, buffer.data(), buffer.size());
  close(descriptor);
  return length > 0 ? std::string_view(buffer.data(), static_cast<std::size_t>(length))
                    : std::string_view();
}

// Returns 0 if no process has this number.
ProcessId process_of(pid_t number) {
  std::array<char, 1024> buffer{};
  const std::string_view stat = read_whole(fmt::format("/proc/{}/stat", number).c_str(), buffer);
  // The start time is the 22nd field; the second is a name in brackets, which may hold anything.
  std::size_t at = stat.rfind(')');
  for (int field = 2; field < 22 && at != std::string_view::npos; ++field) {
    at = stat.find(' ', at + 1);
  }
  if (at == std::string_view::npos) return 0;
  const std::uint64_t began = std::strtoull(stat.data() + at, nullptr, 10);
  return began << kNumberBits | static_cast<std::uint64_t>(number);
}

}  // namespace

ProcessId this_process() {
  const ProcessId id = process_of(getpid());
  if (id == 0) throw PlatformError("/proc/self/stat cannot be read");
  return id;
}

Process::Process(ProcessId id) : id_(id) {
  if (id == 0) return;
  descriptor_ = static_cast<int>(syscall(SYS_pidfd_open, number(), 0));
  if (descriptor_ < 0) {
    is_gone_ = errno == ESRCH;
    return;
  }
  const ProcessId found = process_of(number());
  is_gone_ = found != 0 && found != id;
}
Process::~Process() {
  if (descriptor_ >= 0) close(descriptor_);
}
Process::Process(Process&& other) noexcept
    : id_(other.id_), descriptor_(std::exchange(other.descriptor_, -1)), is_gone_(other.is_gone_) {}
Process& Process::operator=(Process&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(is_gone_, other.is_gone_);
  return *this;
}

int Process::number() const {
  return static_cast<int>(id_ & ((std::uint64_t{1} << kNumberBits) - 1));
}

bool Process::has_ended() const {
  if (is_gone_ || descriptor_ < 0) return is_gone_;
  pollfd ended{descriptor_, POLLIN, 0};
  return poll(&ended, 1, 0) == 1;
}

void Process::kill() const {
  if (!is_gone_ && descriptor_ >= 0)
    syscall(SYS_pidfd_send_signal, descriptor_, SIGKILL, nullptr, 0);
}

void wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t value, int milliseconds) {
  const timespec limit{milliseconds / 1000, milliseconds % 1000 * 1000000L};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, milliseconds < 0 ? nullptr : &limit, nullptr, 0);
}
void wake_all(const std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, ~0U >> 1, nullptr, nullptr, 0);
}

namespace {

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw PlatformError(fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

// Locks the file, without waiting forever for a process that is stopped while it holds the lock.
void lock(int descriptor, const std::string& path) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) fail(path, "cannot be locked");
    if (std::chrono::steady_clock::now() > deadline) {
      throw PlatformError(fmt::format(
          "{}: another process keeps it locked; is one stopped while it begins to read?", path));
    }
    std::this_thread::sleep_for(Microseconds(100));
  }
}

void begin_boot(SharedReaders& shared, std::string_view boot) {
  for (auto& reader : shared.readers) reader = 0;
  // A server of the boot before did not end, so the file may hold a part of a change.
  if (shared.server.exchange(0) != 0 && shared.reason != SharedReaders::Reason::primary) {
    if (!shared.is_changing()) ++shared.sequence;
    shared.reason = SharedReaders::Reason::in_change;
  }
  boot.copy(shared.boot, sizeof shared.boot - 1);
}

}  // namespace

SharedReadersFile::SharedReadersFile(const std::string& file) {
  const std::string path = state_folder(file) + "/readers";
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0 && errno == EACCES) {
    throw UsageError(
        fmt::format("{}: belongs to another user; a copy is read by the user who makes it", path));
  }
  if (descriptor < 0) fail(path, "cannot be opened");
  // Unlocked explicitly, since the mapping would keep the lock.
  struct UnlockAndClose {
    int descriptor;
    ~UnlockAndClose() {
      flock(descriptor, LOCK_UN);
      close(descriptor);
    }
  } at_end{descriptor};
  lock(descriptor, path);
  struct stat found {};
  fstat(descriptor, &found);
  if (found.st_uid != geteuid()) {
    throw UsageError(
        fmt::format("{}: belongs to another user; a copy is read by the user who makes it", path));
  }
  constexpr off_t kSize = sizeof(SharedReaders);
  errno = found.st_size < kSize ? posix_fallocate(descriptor, 0, kSize) : 0;
  if (errno != 0) fail(path, "cannot get its size");
  void* const memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) fail(path, "cannot be mapped");
  shared_ = static_cast<SharedReaders*>(memory);
  if (shared_->version == 0) {
    // If the file was there, a power failure may have lost its contents.
    shared_->sequence = found.st_size == 0 ? 0 : 1;
    shared_->version = SharedReaders::kVersion;
  }
  if (shared_->version != SharedReaders::kVersion) {
    munmap(memory, kSize);
    throw UsageError(fmt::format(
        "{}: is of another version of perdura; remove it when nobody reads the copy", path));
  }
  std::array<char, sizeof SharedReaders::boot> buffer{};
  std::string_view boot = read_whole("/proc/sys/kernel/random/boot_id", buffer);
  boot = boot.substr(0, boot.find('\n'));
  if (boot != std::string_view(shared_->boot)) begin_boot(*shared_, boot);
}

SharedReadersFile::~SharedReadersFile() { munmap(shared_, sizeof(SharedReaders)); }

void SharedReadersFile::persist() const { msync(shared_, kReaderPage, MS_SYNC); }

bool has_state(const std::string& file) {
  const std::string region = state_folder(file) + "/" + kRegion;
  struct stat own {};
  struct stat known {};
  return is_there(file) && is_there(region) && stat(file.c_str(), &own) == 0 &&
         stat(region.c_str(), &known) == 0 && own.st_ino == known.st_ino &&
         own.st_dev == known.st_dev;
}

std::optional<std::string> why_unreadable(const std::string& file, const SharedReaders& shared) {
  const SharedReaders::Reason reason = shared.reason;
  if (!shared.is_changing()) return std::nullopt;
  if (reason == SharedReaders::Reason::primary) {
    return fmt::format("{}: is the program's own file and no copy; read the mirror's", file);
  }
  if (!Process(shared.server).has_ended()) return std::nullopt;
  if (reason == SharedReaders::Reason::incomplete) {
    return fmt::format("{}: the copy is incomplete; the next run gives it the file", file);
  }
  return fmt::format(
      "{}: the copy may hold a sync point in part, since its process was killed; the next run, or "
      "perdura mojim recover, completes it",
      file);
}

}  // namespace perdura::preload
