// The library that `perdura mojim read` preloads into a program's process. It replaces calls of the
// C library that map the file of a copy, or read it. All others go where they always go.
//
//   mmap, mprotect, ...   as always; pages are withdrawn while a checkpoint changes them
//   read, pread, ...      of the file: no checkpoint is applied meanwhile, so they see all of a
//                         sync point or nothing
//   write, send, ...      of mapped pages: the kernel does not wait for pages that are withdrawn
//                         (EFAULT), so the call is made again when they are back
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "platform/base/limits.h"
#include "preload/reader.h"
#include "preload/real_call.h"

extern "C" {
// Programs that are compiled with _FORTIFY_SOURCE call this instead of read().
ssize_t __read_chk(int descriptor, void* data, size_t length, size_t room);
ssize_t __pread_chk(int descriptor, void* data, size_t length, off_t offset, size_t room);
ssize_t __pread64_chk(int descriptor, void* data, size_t length, off64_t offset, size_t room);
}

namespace {

using perdura::round_up;
using perdura::preload::CopyReader;
using perdura::preload::kReaderPage;

// Set before main(); null in a process that is no reader.
std::atomic<CopyReader*> current{nullptr};
std::string* file_name = nullptr;
[[gnu::constructor]] void begin() {
  const char* const file = std::getenv("PERDURA_MOJIM_READS");
  if (file == nullptr) return;
  try {
    file_name = new std::string(file);
    current = new CopyReader(file);
  } catch (const std::exception& error) {
    CopyReader::end_process(perdura::problem_text(error));
  }
}

CopyReader* reader() { return current.load(std::memory_order_acquire); }

[[noreturn]] void refuse(const char* what) {
  CopyReader::end_process(*file_name + ": " + what +
                          "; a copy is only read, and changed by the program on the primary");
}

template <class Function>
auto guarded(Function function) {
  try {
    return function();
  } catch (const std::exception& error) {
    CopyReader::end_process(perdura::problem_text(error));
  }
}

std::uintptr_t address_of(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

// --- mappings ------------------------------------------------------------------------------------

template <class Map>
void* map(Map* otherwise, void* address, std::size_t length, int protection, int flags,
          int descriptor, off_t offset) {
  CopyReader* const reading = reader();
  const auto make = [&] {
    return otherwise(address, length, protection, flags, descriptor, offset);
  };
  if (reading == nullptr) return make();
  const bool is_copy =
      descriptor >= 0 && (flags & MAP_ANONYMOUS) == 0 && reading->is_copy(descriptor);
  const bool replaces = (flags & MAP_FIXED) != 0 && reading->has(address, length);
  if (!is_copy && !replaces) return make();
  const bool is_shared =
      (flags & MAP_TYPE) == MAP_SHARED || (flags & MAP_TYPE) == MAP_SHARED_VALIDATE;
  if (is_copy && is_shared && (protection & PROT_WRITE) != 0) {
    refuse("the program maps it to write to it");
  }
  return guarded([&] {
    CopyReader::Mapping mappings(*reading);
    void* const made = make();
    if (made == MAP_FAILED) return made;
    const std::uintptr_t first = address_of(made);
    const std::uintptr_t last = first + round_up(length, kReaderPage);
    if (replaces) mappings.remove(first, last);
    if (is_copy) {
      const auto page = static_cast<std::uint64_t>(offset) / kReaderPage;
      mappings.add({first, last, page, protection, is_shared});
    }
    return made;
  });
}

int unmap(void* address, std::size_t length) {
  CopyReader* const reading = reader();
  if (reading == nullptr || !reading->has(address, length)) return REAL(munmap)(address, length);
  return guarded([&] {
    CopyReader::Mapping mappings(*reading);
    mappings.remove(address_of(address), address_of(address) + round_up(length, kReaderPage));
    return REAL(munmap)(address, length);
  });
}

int protect(void* address, std::size_t length, int protection) {
  CopyReader* const reading = reader();
  if (reading == nullptr || !reading->has(address, length)) {
    return REAL(mprotect)(address, length, protection);
  }
  if ((protection & PROT_WRITE) != 0 && reading->has_shared(address, length)) {
    refuse("the program changes its mapping to write to it");
  }
  return guarded([&] {
    CopyReader::Mapping mappings(*reading);
    const int result = REAL(mprotect)(address, length, protection);
    if (result != 0) return result;
    const std::uintptr_t first = address_of(address);
    for (CopyReader::Mapping::Part part :
         mappings.remove(first, first + round_up(length, kReaderPage))) {
      part.protection = protection;
      mappings.add(part);
    }
    return result;
  });
}

void* move(void* address, std::size_t before, std::size_t after, int flags, void* to) {
  CopyReader* const reading = reader();
  const auto make = [&] { return REAL(mremap)(address, before, after, flags, to); };
  if (reading == nullptr || (!reading->has(address, before) && !reading->has(to, after))) {
    return make();
  }
  return guarded([&] {
    CopyReader::Mapping mappings(*reading);
    void* const made = make();
    if (made == MAP_FAILED) return made;
    const std::uintptr_t former = address_of(address);
    const std::uintptr_t last = address_of(made) + round_up(after, kReaderPage);
    auto parts = mappings.remove(former, former + round_up(before, kReaderPage));
    mappings.remove(address_of(made), last);
    for (CopyReader::Mapping::Part& part : parts) {
      part.begin += address_of(made) - former;
      part.end += address_of(made) - former;
      if (&part == &parts.back()) part.end = last;  // it may have grown
      part.end = std::min(part.end, last);
      if (part.begin < part.end) mappings.add(part);
    }
    return made;
  });
}

// --- calls that read the file --------------------------------------------------------------------

template <class Call>
ssize_t read_by(int descriptor, Call call) {
  CopyReader* const reading = reader();
  if (reading == nullptr || !reading->is_copy(descriptor)) return call();
  return guarded([&] {
    const CopyReader::Reading now(*reading);
    return call();
  });
}

// --- calls to which mapped pages are given -------------------------------------------------------

template <class Call, class Touch>
ssize_t give(Call call, Touch touch) {
  for (;;) {
    const ssize_t result = call();
    const CopyReader* const reading = reader();
    if (result >= 0 || errno != EFAULT || reading == nullptr || !touch(*reading)) return result;
  }
}

template <class Call>
ssize_t give_data(const void* data, std::size_t length, Call call) {
  return give(call, [&](const CopyReader& reading) { return reading.touch(data, length); });
}

template <class Call>
ssize_t give_parts(const iovec* parts, std::size_t count, Call call) {
  return give(call, [&](const CopyReader& reading) {
    bool found = false;
    for (std::size_t i = 0; i < count; ++i) {
      found |= reading.touch(parts[i].iov_base, parts[i].iov_len);
    }
    return found;
  });
}

void refuse_writing(int descriptor) {
  const CopyReader* const reading = reader();
  if (reading != nullptr && reading->is_copy(descriptor)) refuse("the program writes to it");
}

// The C library's streams do not call this library's write(), so they are given copies of mapped
// pages.
template <class Write>
std::size_t write_stream(Write* otherwise, const void* data, std::size_t size, std::size_t count,
                         std::FILE* stream) {
  const CopyReader* const reading = reader();
  if (reading == nullptr || !reading->has(data, size * count)) {
    return otherwise(data, size, count, stream);
  }
  std::array<char, kReaderPage> some;
  std::size_t done = 0;
  while (done < size * count) {
    const std::size_t length = std::min(some.size(), size * count - done);
    std::memcpy(some.data(), static_cast<const char*>(data) + done, length);
    const std::size_t written = otherwise(some.data(), 1, length, stream);
    done += written;
    if (written < length) break;
  }
  return done / size;
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
int munmap(void* address, size_t length) noexcept { return unmap(address, length); }
int mprotect(void* address, size_t length, int protection) noexcept {
  return protect(address, length, protection);
}
void* mremap(void* address, size_t before, size_t after, int flags, ...) noexcept {
  void* to = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list more;
    va_start(more, flags);
    to = va_arg(more, void*);
    va_end(more);
  }
  return move(address, before, after, flags, to);
}

ssize_t read(int descriptor, void* data, size_t length) {
  return read_by(descriptor, [&] { return REAL(read)(descriptor, data, length); });
}
ssize_t readv(int descriptor, const iovec* parts, int count) {
  return read_by(descriptor, [&] { return REAL(readv)(descriptor, parts, count); });
}
ssize_t pread(int descriptor, void* data, size_t length, off_t offset) {
  return read_by(descriptor, [&] { return REAL(pread)(descriptor, data, length, offset); });
}
ssize_t pread64(int descriptor, void* data, size_t length, off64_t offset) {
  return read_by(descriptor, [&] { return REAL(pread64)(descriptor, data, length, offset); });
}
ssize_t preadv(int descriptor, const iovec* parts, int count, off_t offset) {
  return read_by(descriptor, [&] { return REAL(preadv)(descriptor, parts, count, offset); });
}
ssize_t preadv64(int descriptor, const iovec* parts, int count, off64_t offset) {
  return read_by(descriptor, [&] { return REAL(preadv64)(descriptor, parts, count, offset); });
}
ssize_t __read_chk(int descriptor, void* data, size_t length, size_t room) {
  return read_by(descriptor, [&] { return REAL(__read_chk)(descriptor, data, length, room); });
}
ssize_t __pread_chk(int descriptor, void* data, size_t length, off_t offset, size_t room) {
  return read_by(descriptor,
                 [&] { return REAL(__pread_chk)(descriptor, data, length, offset, room); });
}
ssize_t __pread64_chk(int descriptor, void* data, size_t length, off64_t offset, size_t room) {
  return read_by(descriptor,
                 [&] { return REAL(__pread64_chk)(descriptor, data, length, offset, room); });
}

ssize_t write(int descriptor, const void* data, size_t length) {
  refuse_writing(descriptor);
  return give_data(data, length, [&] { return REAL(write)(descriptor, data, length); });
}
ssize_t pwrite(int descriptor, const void* data, size_t length, off_t offset) {
  refuse_writing(descriptor);
  return give_data(data, length, [&] { return REAL(pwrite)(descriptor, data, length, offset); });
}
ssize_t pwrite64(int descriptor, const void* data, size_t length, off64_t offset) {
  refuse_writing(descriptor);
  return give_data(data, length, [&] { return REAL(pwrite64)(descriptor, data, length, offset); });
}
ssize_t writev(int descriptor, const iovec* parts, int count) {
  refuse_writing(descriptor);
  return give_parts(parts, static_cast<std::size_t>(count),
                    [&] { return REAL(writev)(descriptor, parts, count); });
}
ssize_t pwritev(int descriptor, const iovec* parts, int count, off_t offset) {
  refuse_writing(descriptor);
  return give_parts(parts, static_cast<std::size_t>(count),
                    [&] { return REAL(pwritev)(descriptor, parts, count, offset); });
}
ssize_t pwritev64(int descriptor, const iovec* parts, int count, off64_t offset) {
  refuse_writing(descriptor);
  return give_parts(parts, static_cast<std::size_t>(count),
                    [&] { return REAL(pwritev64)(descriptor, parts, count, offset); });
}
ssize_t send(int socket, const void* data, size_t length, int flags) {
  return give_data(data, length, [&] { return REAL(send)(socket, data, length, flags); });
}
ssize_t sendto(int socket, const void* data, size_t length, int flags, const sockaddr* to,
               socklen_t size) {
  return give_data(data, length,
                   [&] { return REAL(sendto)(socket, data, length, flags, to, size); });
}
ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  return give_parts(message->msg_iov, message->msg_iovlen,
                    [&] { return REAL(sendmsg)(socket, message, flags); });
}
size_t fwrite(const void* data, size_t size, size_t count, FILE* stream) {
  return write_stream(REAL(fwrite), data, size, count, stream);
}
size_t fwrite_unlocked(const void* data, size_t size, size_t count, FILE* stream) {
  return write_stream(REAL(fwrite_unlocked), data, size, count, stream);
}

}  // extern "C"
