#include "preload/mappings.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace perdura::preload {

namespace {

// As in <linux/fs.h> of Linux 6.11, which distributions do not have yet.
struct ProcmapQuery {
  std::uint64_t size;
  std::uint64_t flags;
  std::uint64_t address;
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t vma_flags;
  std::uint64_t page_size;
  std::uint64_t offset;
  std::uint64_t inode;
  std::uint32_t device_major;
  std::uint32_t device_minor;
  std::uint32_t name_size;
  std::uint32_t build_id_size;
  std::uint64_t name_address;
  std::uint64_t build_id_address;
};
constexpr std::uint64_t kShared = 0x08;
constexpr std::uint64_t kCoveringOrNext = 0x10;
constexpr std::uint64_t kOfFiles = 0x20;
constexpr unsigned long kQuery = _IOWR('f', 17, ProcmapQuery);

// The lines of /proc/PID/maps, for older kernels: "begin-end rwxs offset major:minor inode name".
class Lines {
 public:
  explicit Lines(int descriptor) : descriptor_(descriptor) {}
  // The next line, cut off where it is too long; false at the end.
  bool next(char (&line)[128]) {
    std::size_t length = 0;
    for (;;) {
      if (at_ == filled_) {
        const long got = syscall(SYS_read, descriptor_, buffer_, sizeof buffer_);
        if (got <= 0) return false;
        at_ = 0;
        filled_ = static_cast<std::size_t>(got);
      }
      const char one = buffer_[at_++];
      if (one == '\n') break;
      if (length < sizeof line - 1) line[length++] = one;
    }
    line[length] = '\0';
    return true;
  }

 private:
  int descriptor_;
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
  char buffer_[2048];
};

std::uint64_t number(const char*& text, unsigned base) {
  std::uint64_t value = 0;
  for (;; ++text) {
    const char one = *text;
    const unsigned digit = one >= '0' && one <= '9'   ? static_cast<unsigned>(one - '0')
                           : one >= 'a' && one <= 'f' ? static_cast<unsigned>(one - 'a') + 10
                                                      : 99;
    if (digit >= base) return value;
    value = value * base + digit;
  }
}

std::optional<Mapping> by_lines(int descriptor, std::uintptr_t address) {
  Lines lines(descriptor);
  char line[128];
  while (lines.next(line)) {
    const char* text = line;
    Mapping mapping;
    mapping.begin = number(text, 16);
    mapping.end = number(++text, 16);
    if (mapping.end <= address) continue;
    mapping.is_shared = text[4] == 's';
    text += 6;
    mapping.offset = number(text, 16);
    number(++text, 16);
    number(++text, 16);
    mapping.inode = number(++text, 10);
    return mapping;
  }
  return std::nullopt;
}

int open_maps(std::int32_t process = 0) {
  char path[40] = "/proc/self/maps";
  if (process != 0) std::snprintf(path, sizeof path, "/proc/%d/maps", process);
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
}

// Returns 0, or an errno.
int ask(int descriptor, std::uintptr_t address, std::uint64_t flags, Mapping& mapping) {
  ProcmapQuery query{};
  query.size = sizeof query;
  query.flags = kCoveringOrNext | flags;
  query.address = address;
  if (syscall(SYS_ioctl, descriptor, kQuery, &query) != 0) return errno;
  mapping = {query.begin, query.end, query.offset, query.inode, (query.vma_flags & kShared) != 0};
  return 0;
}

// Returns the mapping that holds this address, or else the first after it; nothing if there is
// none.
std::optional<Mapping> mapping_at(std::uintptr_t address, std::int32_t process) {
  const int descriptor = open_maps(process);
  if (descriptor < 0) return std::nullopt;
  Mapping asked;
  const int problem = ask(descriptor, address, 0, asked);
  std::optional<Mapping> found;
  if (problem == 0) {
    found = asked;
  } else if (problem != ENOENT) {
    found = by_lines(descriptor, address);
  }
  syscall(SYS_close, descriptor);
  return found;
}

}  // namespace

FoundParts find_parts(std::uintptr_t begin, std::size_t length, std::uint64_t inode,
                      std::span<services::MemoryRange> ranges, std::int32_t process) {
  FoundParts found;
  const std::uintptr_t end = begin + length;
  for (std::uintptr_t at = begin; at < end;) {
    const auto mapping = mapping_at(at, process);
    if (!mapping) {
      found.is_unknown = at == begin;
      found.has_others = true;
      return found;
    }
    if (mapping->begin > at) found.has_others = true;  // nothing is mapped there
    const std::uintptr_t first = std::max(at, mapping->begin);
    const std::uintptr_t last = std::min(end, mapping->end);
    at = mapping->end;
    if (first >= last) continue;
    // A file system of another kind may have the same number: then it is synced, too.
    if (!mapping->is_shared || mapping->inode != inode) {
      found.has_others = true;
      continue;
    }
    if (found.count == ranges.size()) {
      found.is_unknown = true;
      return found;
    }
    ranges[found.count++] = {mapping->offset + (first - mapping->begin), last - first};
  }
  return found;
}

MappingsOfFiles::MappingsOfFiles() : descriptor_(open_maps()) {}
MappingsOfFiles::~MappingsOfFiles() {
  if (descriptor_ >= 0) syscall(SYS_close, descriptor_);
}

MappingsOfFiles::Next MappingsOfFiles::next(std::uintptr_t address, Mapping& mapping) const {
  if (descriptor_ < 0) return Next::unknown;
  const int problem = ask(descriptor_, address, kOfFiles, mapping);
  return problem == 0 ? Next::found : problem == ENOENT ? Next::end : Next::unknown;
}

}  // namespace perdura::preload
