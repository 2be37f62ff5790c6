// The library that `perdura mojim run` preloads into the processes of a program. It replaces calls
// of the C library that sync the replicated file, and some that are refused. All others go where
// they always go, since what they change is found when the file is synced (sent_contents.h).
//
//   msync, fsync, sync, ...    sync points, of what was changed in any way
//   write, pwrite, ...         as always. If the file was opened with O_SYNC or O_DSYNC, each is a
//                              sync point, and other calls that write there (fdopen, aio_write,
//                              dprintf) are refused, since their writes do not pass this library
//   mmap                       the file is replicated from now on
//   rename, unlink, ...        refused, if the file would be another one or none
#include <aio.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "platform/base/limits.h"
#include "preload/perdura_mojim.h"
#include "preload/program.h"
#include "preload/real_call.h"

namespace {

using perdura::Bytes;
using perdura::preload::Atomicity;
using perdura::preload::FoundParts;
using perdura::preload::Program;
using perdura::services::MemoryRange;

// Set before main() and never destroyed, since other threads may make calls while the process ends.
// Null in a process that does not belong to a run.
std::atomic<Program*> current{nullptr};

[[gnu::constructor]] void begin() {
  if (std::getenv("PERDURA_MOJIM_FILES") == nullptr) return;
  try {
    current = new Program;
  } catch (const std::exception& error) {
    Program::say("%s", perdura::problem_text(error).c_str());
    _exit(2);
  }
  pthread_atfork(nullptr, nullptr, [] {
    if (Program* const program = current.load(); program != nullptr) program->note_fork();
  });
}

// The process ends in an orderly way, so what it has not synced must not be lost.
[[gnu::destructor]] void end() {
  Program* const program = current.load();
  if (program != nullptr && program->is_used()) program->settle();
}

Program* program() { return current.load(std::memory_order_acquire); }

// Returns null if the descriptor is not of the file.
Program* program_of(int descriptor) {
  Program* const one = program();
  return one != nullptr && descriptor >= 0 && one->is_file(descriptor) ? one : nullptr;
}

// --- mappings ------------------------------------------------------------------------------------

template <class Map>
void* map(Map* otherwise, void* address, std::size_t length, int protection, int flags,
          int descriptor, off_t offset) {
  const auto make = [&] {
    return otherwise(address, length, protection, flags, descriptor, offset);
  };
  const int type = flags & MAP_TYPE;
  const bool is_shared = type == MAP_SHARED || type == MAP_SHARED_VALIDATE;
  if ((flags & MAP_ANONYMOUS) != 0 || !is_shared) return make();
  Program* const one = program_of(descriptor);
  if (one == nullptr) return make();
  // A program that gets such a mapping would not call msync (libpmem).
  if (type == MAP_SHARED_VALIDATE && (flags & MAP_SYNC) != 0) {
    errno = EOPNOTSUPP;
    return MAP_FAILED;
  }
  if (!one->begin()) return MAP_FAILED;
  const auto begin = static_cast<Bytes>(offset);
  if (begin > one->size() || length > one->size() - begin) {
    Program::say("the program maps %zu bytes of %s at %zu, and the region has %zu; raise --size",
                 length, one->path(), begin, one->size());
    errno = ENOMEM;
    return MAP_FAILED;
  }
  void* const made = make();
  one->note_mapping();
  return made;
}

// --- sync points ---------------------------------------------------------------------------------

// Fails for another file, too, if the name is no longer that of the replicated one: a file that a
// program has made to take its place is not replicated.
int sync_file(int descriptor, int (*otherwise)(int)) {
  Program* const one = program();
  if (one == nullptr) return otherwise(descriptor);
  if (!one->is_file(descriptor)) {
    const int result = otherwise(descriptor);
    return result == 0 ? one->check_name() : result;
  }
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0 || (flags & O_PATH) != 0) return otherwise(descriptor);
  return one->sync_all();
}

int sync_memory(void* address, std::size_t length, int flags) {
  Program* const one = program();
  if (one == nullptr) return REAL(msync)(address, length, flags);
  constexpr std::size_t kMostParts = 64;
  MemoryRange ranges[kMostParts];
  const FoundParts found = one->find(address, length, ranges);
  if (found.count == 0 && !found.is_unknown) return REAL(msync)(address, length, flags);
  if (found.has_others || found.is_unknown) {
    if (const int result = REAL(msync)(address, length, flags); result != 0) return result;
  } else if (reinterpret_cast<std::uintptr_t>(address) % 4096 != 0 ||
             (flags & ~(MS_ASYNC | MS_SYNC | MS_INVALIDATE)) != 0 ||
             (flags & (MS_ASYNC | MS_SYNC)) == (MS_ASYNC | MS_SYNC)) {
    errno = EINVAL;
    return -1;
  }
  if (found.is_unknown) return one->has_begun() ? one->sync_all() : 0;
  return one->sync({ranges, found.count});
}

bool is_synchronous(int descriptor) {
  return (fcntl(descriptor, F_GETFL) & (O_SYNC | O_DSYNC)) != 0;
}

// The C library would make these writes by calls of its own, which do not pass this library: they
// would be no sync points, although the descriptor promises it.
bool is_unheld(int descriptor, const char* by) {
  const Program* const one = program_of(descriptor);
  if (one == nullptr || !is_synchronous(descriptor)) return false;
  Program::say(
      "the program writes %s by %s, and has opened it such that each write is synced (O_SYNC, "
      "O_DSYNC), which holds for write(2) and its like alone; it must call fsync",
      one->path(), by);
  errno = EINVAL;
  return true;
}

// To be called after a call that has changed the file through this descriptor, which may want it
// synced at once. `length`: the call's result.
template <class Integer>
Integer written(int descriptor, Integer length, int flags = 0) {
  if (length <= 0) return length;
  Program* const one = program_of(descriptor);
  if (one == nullptr) return length;
  if ((flags & (RWF_DSYNC | RWF_SYNC)) == 0 && !is_synchronous(descriptor)) return length;
  return one->sync_all() == 0 ? length : -1;
}

// Returns the flags with which to call the kernel: its own sync is left to written(), and would be
// held as a call that does not pass this library (call_filter.h).
int without_sync(int descriptor, int flags) {
  return program_of(descriptor) == nullptr ? flags : flags & ~(RWF_DSYNC | RWF_SYNC);
}

// Returns true, and sets errno, if a write of this length would make the file longer than what is
// replicated. `offset`: -1 for that of the descriptor.
bool is_too_long(int descriptor, off_t offset, std::size_t length) {
  Program* const one = program_of(descriptor);
  if (one == nullptr || !one->has_begun()) return false;
  if (offset < 0) {
    const bool appends = (fcntl(descriptor, F_GETFL) & O_APPEND) != 0;
    struct stat found {};
    offset =
        appends && fstat(descriptor, &found) == 0 ? found.st_size : lseek(descriptor, 0, SEEK_CUR);
  }
  const auto begin = static_cast<Bytes>(offset);
  if (length == 0 || offset < 0 || (begin <= one->size() && length <= one->size() - begin)) {
    return false;
  }
  Program::say("the program writes %zu bytes at %zu of %s, and the region has %zu; raise --size",
               length, begin, one->path(), one->size());
  errno = EFBIG;
  return true;
}

std::size_t length_of(const iovec* parts, int count) {
  std::size_t length = 0;
  for (int i = 0; i < count; ++i) length += parts[i].iov_len;
  return length;
}

// --- the file itself -----------------------------------------------------------------------------

// Programs give a file the size that they are about to map, but the replicated file keeps its
// larger size. The part that they cut off is zero afterwards, as if they had made it longer again.
template <class Truncate>
int truncate_file(Program* one, Truncate otherwise, int descriptor, off_t length) {
  if (length < 0) return otherwise();
  const auto wanted = static_cast<Bytes>(length);
  if (wanted > one->size()) {
    Program::say("the program makes %s %zu bytes long, and the region has %zu; raise --size",
                 one->path(), wanted, one->size());
    errno = EFBIG;
    return -1;
  }
  if (wanted == one->size()) return otherwise();
  const auto cut = static_cast<off_t>(one->size() - wanted);
  if (fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, length, cut) != 0) {
    Program::say("the end of %s cannot be cut off", one->path());
    return -1;
  }
  const int before = errno;
  fallocate(descriptor, 0, length, cut);  // keeps room for it, as before
  errno = before;
  return 0;
}

template <class Truncate>
int truncate_descriptor(Truncate* otherwise, int descriptor, off_t length) {
  const auto make = [&] { return otherwise(descriptor, length); };
  Program* const one = program_of(descriptor);
  if (one == nullptr || !one->has_begun()) return make();
  return truncate_file(one, make, descriptor, length);
}

template <class Truncate>
int truncate_name(Truncate* otherwise, const char* name, off_t length) {
  const auto make = [&] { return otherwise(name, length); };
  Program* const one = program();
  if (one == nullptr || !one->is_replicated(AT_FDCWD, name, true)) return make();
  const int descriptor = open(name, O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return -1;
  const int result = truncate_file(one, make, descriptor, length);
  close(descriptor);
  return result;
}

bool is_refused(int folder, const char* name, const char* what) {
  Program* const one = program();
  if (one == nullptr || !one->is_replicated(folder, name, false)) return false;
  Program::say("the program %s %s, which is replicated; it must stay the same file", what, name);
  errno = EPERM;
  return true;
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

// May drop pages from memory, and with them the kernel's note that they were stored to.
int madvise(void* address, size_t length, int advice) noexcept {
  const int result = REAL(madvise)(address, length, advice);
  if (program() != nullptr) program()->note_mapping();
  return result;
}

int msync(void* address, size_t length, int flags) { return sync_memory(address, length, flags); }
int fsync(int descriptor) { return sync_file(descriptor, REAL(fsync)); }
int fdatasync(int descriptor) { return sync_file(descriptor, REAL(fdatasync)); }
int syncfs(int descriptor) noexcept {
  Program* const one = program();
  if (one != nullptr && one->has_begun() && one->sync_all() != 0) return -1;
  return REAL(syncfs)(descriptor);
}
// sync(2) cannot fail, so an error is only reported in a line.
void sync() noexcept {
  Program* const one = program();
  if (one != nullptr && one->has_begun()) one->sync_all();
  REAL(sync)();
}
int sync_file_range(int descriptor, off64_t offset, off64_t length, unsigned flags) {
  Program* const one = program_of(descriptor);
  if (one != nullptr && one->sync_all() != 0) return -1;
  return REAL(sync_file_range)(descriptor, offset, length, flags);
}

// Syncs at once: a program that waits for the end of the operation finds everything at the copies
// then.
int aio_fsync(int operation, struct aiocb* control) noexcept {
  if (program_of(control->aio_fildes) == nullptr) return REAL(aio_fsync)(operation, control);
  struct aiocb before {};  // ends after all that was begun
  before.aio_fildes = control->aio_fildes;
  before.aio_sigevent.sigev_notify = SIGEV_NONE;
  if (REAL(aio_fsync)(operation, &before) != 0) return -1;
  const struct aiocb* const list[] = {&before};
  while (aio_error(&before) == EINPROGRESS) aio_suspend(list, 1, nullptr);
  if (aio_return(&before) != 0 || program()->sync_all() != 0) return -1;
  return REAL(aio_fsync)(operation, control);
}
int aio_fsync64(int operation, struct aiocb64* control) noexcept {
  return aio_fsync(operation, reinterpret_cast<struct aiocb*>(control));
}

FILE* fdopen(int descriptor, const char* mode) noexcept {
  return is_unheld(descriptor, "fdopen") ? nullptr : REAL(fdopen)(descriptor, mode);
}
int aio_write(struct aiocb* control) noexcept {
  return is_unheld(control->aio_fildes, "aio_write") ? -1 : REAL(aio_write)(control);
}
int aio_write64(struct aiocb64* control) noexcept {
  return aio_write(reinterpret_cast<struct aiocb*>(control));
}
int vdprintf(int descriptor, const char* format, std::va_list given) {
  return is_unheld(descriptor, "dprintf") ? -1 : REAL(vdprintf)(descriptor, format, given);
}
int dprintf(int descriptor, const char* format, ...) {
  std::va_list given;
  va_start(given, format);
  const int length = vdprintf(descriptor, format, given);
  va_end(given);
  return length;
}

int ftruncate(int descriptor, off_t length) noexcept {
  return truncate_descriptor(REAL(ftruncate), descriptor, length);
}
int ftruncate64(int descriptor, off64_t length) noexcept {
  return truncate_descriptor(REAL(ftruncate64), descriptor, length);
}
int truncate(const char* name, off_t length) noexcept {
  return truncate_name(REAL(truncate), name, length);
}
int truncate64(const char* name, off64_t length) noexcept {
  return truncate_name(REAL(truncate64), name, length);
}

int rename(const char* from, const char* to) noexcept {
  if (is_refused(AT_FDCWD, from, "renames") ||
      is_refused(AT_FDCWD, to, "renames another file to")) {
    return -1;
  }
  return REAL(rename)(from, to);
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  if (is_refused(from_folder, from, "renames") ||
      is_refused(to_folder, to, "renames another file to")) {
    return -1;
  }
  return REAL(renameat)(from_folder, from, to_folder, to);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  if (is_refused(from_folder, from, "renames") ||
      is_refused(to_folder, to, "renames another file to")) {
    return -1;
  }
  return REAL(renameat2)(from_folder, from, to_folder, to, flags);
}
int unlink(const char* name) noexcept {
  return is_refused(AT_FDCWD, name, "removes") ? -1 : REAL(unlink)(name);
}
int unlinkat(int folder, const char* name, int flags) noexcept {
  return is_refused(folder, name, "removes") ? -1 : REAL(unlinkat)(folder, name, flags);
}
int remove(const char* name) noexcept {
  return is_refused(AT_FDCWD, name, "removes") ? -1 : REAL(remove)(name);
}

ssize_t write(int descriptor, const void* data, size_t length) {
  if (is_too_long(descriptor, -1, length)) return -1;
  return written(descriptor, REAL(write)(descriptor, data, length));
}
ssize_t writev(int descriptor, const iovec* parts, int count) {
  if (is_too_long(descriptor, -1, length_of(parts, count))) return -1;
  return written(descriptor, REAL(writev)(descriptor, parts, count));
}
ssize_t pwrite(int descriptor, const void* data, size_t length, off_t offset) {
  if (is_too_long(descriptor, offset, length)) return -1;
  return written(descriptor, REAL(pwrite)(descriptor, data, length, offset));
}
ssize_t pwrite64(int descriptor, const void* data, size_t length, off64_t offset) {
  if (is_too_long(descriptor, offset, length)) return -1;
  return written(descriptor, REAL(pwrite64)(descriptor, data, length, offset));
}
ssize_t pwritev(int descriptor, const iovec* parts, int count, off_t offset) {
  if (is_too_long(descriptor, offset, length_of(parts, count))) return -1;
  return written(descriptor, REAL(pwritev)(descriptor, parts, count, offset));
}
ssize_t pwritev64(int descriptor, const iovec* parts, int count, off64_t offset) {
  if (is_too_long(descriptor, offset, length_of(parts, count))) return -1;
  return written(descriptor, REAL(pwritev64)(descriptor, parts, count, offset));
}
ssize_t pwritev2(int descriptor, const iovec* parts, int count, off_t offset, int flags) {
  if (is_too_long(descriptor, offset, length_of(parts, count))) return -1;
  return written(descriptor,
                 REAL(pwritev2)(descriptor, parts, count, offset, without_sync(descriptor, flags)),
                 flags);
}
ssize_t pwritev64v2(int descriptor, const iovec* parts, int count, off64_t offset, int flags) {
  if (is_too_long(descriptor, offset, length_of(parts, count))) return -1;
  return written(
      descriptor,
      REAL(pwritev64v2)(descriptor, parts, count, offset, without_sync(descriptor, flags)), flags);
}
ssize_t sendfile(int to, int from, off_t* offset, size_t length) noexcept {
  return written(to, REAL(sendfile)(to, from, offset, length));
}
ssize_t sendfile64(int to, int from, off64_t* offset, size_t length) noexcept {
  return written(to, REAL(sendfile64)(to, from, offset, length));
}
ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t length,
                        unsigned flags) {
  return written(to, REAL(copy_file_range)(from, from_offset, to, to_offset, length, flags));
}
ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t length,
               unsigned flags) {
  return written(to, REAL(splice)(from, from_offset, to, to_offset, length, flags));
}

// For programs that make system calls by their numbers.
long syscall(long number, ...) noexcept {
  std::va_list given;
  va_start(given, number);
  long a[6];
  for (long& argument : a) argument = va_arg(given, long);
  va_end(given);
  if (program() != nullptr) {
    const auto first = static_cast<int>(a[0]);
    switch (number) {
      case SYS_msync:
        return msync(reinterpret_cast<void*>(a[0]), static_cast<size_t>(a[1]),
                     static_cast<int>(a[2]));
      case SYS_fsync:
        return fsync(first);
      case SYS_fdatasync:
        return fdatasync(first);
      case SYS_syncfs:
        return syncfs(first);
      case SYS_sync:
        sync();
        return 0;
      case SYS_sync_file_range:
        return sync_file_range(first, a[1], a[2], static_cast<unsigned>(a[3]));
      case SYS_write:
        return write(first, reinterpret_cast<void*>(a[1]), static_cast<size_t>(a[2]));
      case SYS_pwrite64:
        return pwrite64(first, reinterpret_cast<void*>(a[1]), static_cast<size_t>(a[2]), a[3]);
      case SYS_writev:
        return writev(first, reinterpret_cast<const iovec*>(a[1]), static_cast<int>(a[2]));
      case SYS_pwritev:
        return pwritev64(first, reinterpret_cast<const iovec*>(a[1]), static_cast<int>(a[2]), a[3]);
      case SYS_pwritev2:
        return pwritev64v2(first, reinterpret_cast<const iovec*>(a[1]), static_cast<int>(a[2]),
                           a[3], static_cast<int>(a[5]));
      case SYS_io_uring_setup:
      case SYS_io_setup:
        // As call_filter.h does, for kernels without filters.
        errno = ENOSYS;
        return -1;
      default:
        break;
    }
  }
  return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int perdura_gmsync(const struct gmsync_range* ranges, int count) {
  Program* const one = program();
  MemoryRange given[perdura::preload::SyncRequest::kMostRanges];
  std::size_t used = 0;
  const auto refuse = [one](int error, const char* why) {
    Program::say("gmsync: %s", why);
    if (one != nullptr && error == ENOSPC) one->note_refused();
    errno = error;
    return -1;
  };
  for (int i = 0; i < count; ++i) {
    if (ranges[i].length == 0) continue;
    const std::span<MemoryRange> room = std::span(given).subspan(used);
    if (room.empty()) return refuse(ENOSPC, "more than 1024 ranges are refused");
    FoundParts found{.has_others = true};
    if (one != nullptr) found = one->find(ranges[i].address, ranges[i].length, room);
    if (found.is_unknown && found.count > 0) return refuse(ENOSPC, "too many mappings");
    if (found.has_others) return refuse(ENOMEM, "a range is not in the mapped file");
    used += found.count;
  }
  return used == 0 ? 0 : one->sync({given, used}, Atomicity::required);
}

}  // extern "C"
