// What `perdura mojim run` loads into an application's process: calls of the C library that map the
// file which is replicated, write to it or sync it. All others go where they always go.
//
//   mmap(MAP_SHARED)           memory of Mojim's primary, instead of a mapping of one's own
//   msync, fsync, fdatasync    sync points, of what was changed
//   write, pwrite, ...         as always; what they have written is noted. If the file was opened
//                              with O_SYNC or O_DSYNC, each is a sync point
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "library/mojim/application.h"
#include "library/mojim/perdura_mojim.h"
#include "library/mojim/real_call.h"
#include "platform/base/error.h"

namespace {

using perdura::Bytes;
using perdura::mojim::Application;
using perdura::mojim::Cluster;
using perdura::services::MemoryRange;

// Set on Mojim's own threads, and while a thread is at work for it.
thread_local bool inside = false;
class Inside {
 public:
  Inside() : before_(std::exchange(inside, true)) {}
  ~Inside() { inside = before_; }

 private:
  bool before_;
};

void say(const char* what) { std::fprintf(stderr, "perdura mojim: %s\n", what); }

// The application's file.
class File {
 public:
  File() {
    if (std::getenv("PERDURA_MOJIM_FILES") == nullptr) return;
    const Inside now;
    try {
      cluster_ = Cluster::from_environment();
      known_ = true;
      process_ = getpid();
      // What the application reads of a file that was replicated before is as it was synced.
      struct stat state {};
      if (stat(perdura::mojim::state_folder(path()).c_str(), &state) == 0 && exists()) begin();
    } catch (const std::exception& error) {
      end_process(error);
    }
  }
  ~File() {
    if (!known_ || getpid() != process_) return;
    const Inside now;
    if (application_ == nullptr) {
      std::fprintf(
          stderr,
          "perdura mojim: nothing was replicated: the program has not mapped %s (mmap with "
          "MAP_SHARED)\n",
          path().c_str());
    }
    application_ = nullptr;
    owned_.reset();
  }

  bool is(int descriptor) const {
    if (!known_ || inside || getpid() != process_) return false;
    struct stat its {};
    struct stat ours = state_;
    if (application_ == nullptr && stat(path().c_str(), &ours) != 0) return false;
    return fstat(descriptor, &its) == 0 && its.st_ino == ours.st_ino && its.st_dev == ours.st_dev;
  }
  bool is_replicated(int descriptor) const { return application_ != nullptr && is(descriptor); }

  // The application's memory at this place of the file; null, with errno, if it has no such place.
  void* map(std::size_t length, off_t offset) {
    const Inside now;
    const std::lock_guard held(beginning_);
    try {
      if (application_ == nullptr) begin();
    } catch (const std::exception& error) {
      say(error.what());
      errno = ENOMEM;
      return MAP_FAILED;
    }
    const std::span<std::byte> memory = application()->memory();
    const auto begin = static_cast<Bytes>(offset);
    if (begin > memory.size() || length > memory.size() - begin) {
      std::fprintf(stderr,
                   "perdura mojim: the program maps %zu bytes of %s, and the region has %zu; raise "
                   "--size\n",
                   length, path().c_str(), memory.size());
      errno = ENOMEM;
      return MAP_FAILED;
    }
    return memory.data() + begin;
  }

  // Whether the memory is part of the file.
  bool has(const void* address) const {
    if (application() == nullptr || inside || getpid() != process_) return false;
    const std::span<std::byte> memory = application()->memory();
    const auto* const at = static_cast<const std::byte*>(address);
    return at >= memory.data() && at < memory.data() + memory.size();
  }
  Bytes offset_of(const void* address) const {
    return static_cast<Bytes>(static_cast<const std::byte*>(address) -
                              application()->memory().data());
  }
  Application* application() const { return application_.load(std::memory_order_acquire); }
  Bytes size() const { return application()->memory().size(); }

  int sync(std::span<const MemoryRange> ranges,
           Application::Atomicity atomicity = Application::Atomicity::if_possible) {
    const Inside now;
    const auto problem = application()->sync(ranges, atomicity);
    if (!problem) return 0;
    std::fprintf(stderr, "perdura mojim: a sync point failed: %s\n",
                 std::string(to_string(*problem)).c_str());
    errno = *problem == perdura::services::SyncError::too_large ? ENOSPC : EIO;
    return -1;
  }

  // What a call has written at this place, which its descriptor may want to be synced at once.
  ssize_t written(int descriptor, off_t offset, ssize_t length) {
    if (length <= 0) return length;
    const MemoryRange range{static_cast<Bytes>(offset), static_cast<Bytes>(length)};
    application()->note_written(range.offset, range.length);
    const int flags = fcntl(descriptor, F_GETFL);
    if ((flags & (O_SYNC | O_DSYNC)) != 0 && sync({&range, 1}) != 0) return -1;
    return length;
  }

 private:
  const std::string& path() const { return cluster_.files.front(); }
  bool exists() const {
    struct stat found {};
    return stat(path().c_str(), &found) == 0;
  }
  void begin() {
    owned_ = std::make_unique<Application>(cluster_, [] { inside = true; });
    stat(path().c_str(), &state_);
    application_ = owned_.get();  // other threads may use it from now on
  }
  [[noreturn]] static void end_process(const std::exception& error) {
    say(error.what());
    _exit(2);
  }

  Cluster cluster_;
  bool known_ = false;
  pid_t process_ = 0;
  std::mutex beginning_;
  struct stat state_ {};  // which file it is, once it is replicated
  std::unique_ptr<Application> owned_;
  std::atomic<Application*> application_{nullptr};
};

// From before main() until after it. Null while it begins: what it calls itself is not its
// business.
std::atomic<File*> current{nullptr};
[[gnu::constructor]] void begin() { current = new File; }
[[gnu::destructor]] void end() { delete current.exchange(nullptr); }

// The file that this descriptor is of, or this address is in, if that is replicated already; else
// null.
File* replicated(int descriptor) {
  File* const file = current.load(std::memory_order_acquire);
  return file != nullptr && file->is_replicated(descriptor) ? file : nullptr;
}
File* replicated(const void* address) {
  File* const file = current.load(std::memory_order_acquire);
  return file != nullptr && file->has(address) ? file : nullptr;
}

// Where a write(2) through this descriptor has ended.
off_t place_of(int descriptor) { return lseek(descriptor, 0, SEEK_CUR); }

template <class Map>
void* map(Map* otherwise, void* address, std::size_t length, int protection, int flags,
          int descriptor, off_t offset) {
  File* const file = current.load(std::memory_order_acquire);
  const bool shared = (flags & MAP_TYPE) == MAP_SHARED || (flags & MAP_TYPE) == MAP_SHARED_VALIDATE;
  if (file == nullptr || descriptor < 0 || !shared || !file->is(descriptor)) {
    return otherwise(address, length, protection, flags, descriptor, offset);
  }
  if ((flags & MAP_FIXED) != 0) {
    say("the program wants the file at a fixed address, which cannot be had");
    errno = ENOTSUP;
    return MAP_FAILED;
  }
  return file->map(length, offset);
}

template <class Truncate>
int truncate_file(Truncate* otherwise, int descriptor, off_t length) {
  const File* const file = replicated(descriptor);
  if (file == nullptr) return otherwise(descriptor, length);
  // Programs give a file the size that they are about to map, and find that it has more.
  if (static_cast<Bytes>(length) <= file->size() && length > 0) return 0;
  say("a file that is replicated keeps its size; the program wants to change it");
  errno = EPERM;
  return -1;
}

template <class Function>
ssize_t noted(int descriptor, off_t offset, Function write_it) {
  const ssize_t length = write_it();
  File* const file = replicated(descriptor);
  return file != nullptr ? file->written(descriptor, offset, length) : length;
}

template <class Function>
ssize_t noted_at_end(int descriptor, Function write_it) {
  const ssize_t length = write_it();
  File* const file = replicated(descriptor);
  if (file == nullptr) return length;
  return file->written(descriptor, place_of(descriptor) - length, length);
}

int sync_all(int descriptor, int (*otherwise)(int)) {
  File* const file = replicated(descriptor);
  if (file == nullptr) return otherwise(descriptor);
  const MemoryRange all{0, file->size()};
  return file->sync({&all, 1});
}

}  // namespace

extern "C" {

void* mmap(void* address, size_t length, int protection, int flags, int descriptor,
           off_t offset) noexcept {
  return map(REAL(mmap), address, length, protection, flags, descriptor, offset);
}
void* mmap64(void* address, size_t length, int protection, int flags, int descriptor,
             off64_t offset) noexcept {
  return map(REAL(mmap64), address, length, protection, flags, descriptor, offset);
}
int munmap(void* address, size_t length) noexcept {
  if (replicated(address) != nullptr) return 0;  // it stays until the process ends
  return REAL(munmap)(address, length);
}

int msync(void* address, size_t length, int flags) {
  File* const file = replicated(address);
  if (file == nullptr) return REAL(msync)(address, length, flags);
  const MemoryRange range{file->offset_of(address), length};
  return file->sync({&range, 1});
}
int fsync(int descriptor) { return sync_all(descriptor, REAL(fsync)); }
int fdatasync(int descriptor) { return sync_all(descriptor, REAL(fdatasync)); }

int ftruncate(int descriptor, off_t length) noexcept {
  return truncate_file(REAL(ftruncate), descriptor, length);
}
int ftruncate64(int descriptor, off64_t length) noexcept {
  return truncate_file(REAL(ftruncate64), descriptor, length);
}

ssize_t write(int descriptor, const void* data, size_t length) {
  return noted_at_end(descriptor, [&] { return REAL(write)(descriptor, data, length); });
}
ssize_t writev(int descriptor, const iovec* parts, int count) {
  return noted_at_end(descriptor, [&] { return REAL(writev)(descriptor, parts, count); });
}
ssize_t pwrite(int descriptor, const void* data, size_t length, off_t offset) {
  return noted(descriptor, offset, [&] { return REAL(pwrite)(descriptor, data, length, offset); });
}
ssize_t pwrite64(int descriptor, const void* data, size_t length, off64_t offset) {
  return noted(descriptor, offset,
               [&] { return REAL(pwrite64)(descriptor, data, length, offset); });
}
ssize_t pwritev(int descriptor, const iovec* parts, int count, off_t offset) {
  return noted(descriptor, offset, [&] { return REAL(pwritev)(descriptor, parts, count, offset); });
}
ssize_t pwritev64(int descriptor, const iovec* parts, int count, off64_t offset) {
  return noted(descriptor, offset,
               [&] { return REAL(pwritev64)(descriptor, parts, count, offset); });
}

int perdura_gmsync(const struct gmsync_range* ranges, int count) {
  std::vector<MemoryRange> given;
  File* file = nullptr;
  for (int i = 0; i < count; ++i) {
    const auto* const begin = static_cast<const char*>(ranges[i].address);
    if (ranges[i].length == 0) continue;
    file = replicated(begin);
    if (file == nullptr || !file->has(begin + ranges[i].length - 1)) {
      say("gmsync: a range is not in the mapped file");
      errno = ENOMEM;
      return -1;
    }
    given.push_back({file->offset_of(begin), ranges[i].length});
  }
  return given.empty() ? 0 : file->sync(given, Application::Atomicity::required);
}

}  // extern "C"
