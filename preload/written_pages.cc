#include "preload/written_pages.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace perdura::preload {

using services::MemoryRange;

namespace {

// As in <linux/fs.h> and <linux/userfaultfd.h> of Linux 6.7, which distributions do not have yet.
constexpr std::uint64_t kWriteProtectsUnpopulated = 1 << 13;
constexpr std::uint64_t kWriteProtectsAsynchronously = 1 << 15;
constexpr int kUserModeOnly = 1;
struct ScannedRange {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t categories;
};
struct Scan {
  std::uint64_t size;
  std::uint64_t flags;
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t reached;
  std::uint64_t ranges;
  std::uint64_t count;
  std::uint64_t most_pages;
  std::uint64_t inverted;
  std::uint64_t mask;
  std::uint64_t any_of_mask;
  std::uint64_t returned;
};
constexpr std::uint64_t kWritten = 1 << 1;
constexpr std::uint64_t kProtectThem = 1 << 0;
constexpr std::uint64_t kFailIfNotProtected = 1 << 1;
constexpr unsigned long kScan = _IOWR('f', 16, Scan);

int open_userfault() {
  const int made =
      static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | kUserModeOnly));
  if (made < 0) return -1;
  // A number that programs which choose their descriptors' numbers are unlikely to use.
  constexpr int kHigh = 500;
  const int high = fcntl(made, F_DUPFD_CLOEXEC, kHigh);
  if (high >= 0) syscall(SYS_close, made);
  const int descriptor = high >= 0 ? high : made;
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kWriteProtectsAsynchronously | kWriteProtectsUnpopulated;
  if (ioctl(descriptor, UFFDIO_API, &api) == 0) return descriptor;
  syscall(SYS_close, descriptor);
  return -1;
}

}  // namespace

bool WrittenPages::Watched::operator==(const Watched& other) const {
  return count == other.count && std::equal(mappings, mappings + count, other.mappings,
                                            [](const Mapping& a, const Mapping& b) {
                                              return a.begin == b.begin && a.end == b.end &&
                                                     a.offset == b.offset;
                                            });
}

// Lists the shared mappings of the file; false if there are too many, or if the kernel cannot tell.
bool WrittenPages::list(std::uint64_t inode, Watched& now) {
  now.count = 0;
  const MappingsOfFiles all;
  for (std::uintptr_t at = 0;;) {
    Mapping mapping;
    switch (all.next(at, mapping)) {
      case MappingsOfFiles::Next::end:
        return true;
      case MappingsOfFiles::Next::unknown:
        return false;
      case MappingsOfFiles::Next::found:
        break;
    }
    at = mapping.end;
    if (!mapping.is_shared || mapping.inode != inode) continue;
    if (now.count == kMostMappings) return false;
    now.mappings[now.count++] = mapping;
  }
}

// Makes the kernel track stores to these mappings, so that scan() finds them from now on.
void WrittenPages::watch(const Watched& now) {
  const auto protect = [&] {
    return std::all_of(now.mappings, now.mappings + now.count, [&](const Mapping& mapping) {
      uffdio_register watched{};
      watched.range = {mapping.begin, mapping.end - mapping.begin};
      watched.mode = UFFDIO_REGISTER_MODE_WP;
      uffdio_writeprotect protection{};
      protection.range = watched.range;
      protection.mode = UFFDIO_WRITEPROTECT_MODE_WP;
      return ioctl(userfault_, UFFDIO_REGISTER, &watched) == 0 &&
             ioctl(userfault_, UFFDIO_WRITEPROTECT, &protection) == 0;
    });
  };
  if (userfault_ >= 0 && protect()) return;
  // The program may have closed the descriptor; after several times it is not opened again.
  constexpr int kTries = 8;
  if (opened_ == kTries) return;
  ++opened_;
  userfault_ = open_userfault();
  if (userfault_ >= 0) protect();
}

std::optional<std::size_t> WrittenPages::scan(const Watched& now, std::span<MemoryRange> ranges) {
  const int pages =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (pages < 0) return std::nullopt;
  std::size_t used = 0;
  bool is_known = true;
  for (std::size_t i = 0; i < now.count && is_known; ++i) {
    const Mapping& mapping = now.mappings[i];
    for (std::uint64_t at = mapping.begin; at < mapping.end && is_known;) {
      constexpr std::size_t kAtOnce = 64;
      ScannedRange found[kAtOnce];
      Scan scan{};
      scan.size = sizeof scan;
      scan.flags = kProtectThem | kFailIfNotProtected;
      scan.begin = at;
      scan.end = mapping.end;
      scan.ranges = reinterpret_cast<std::uint64_t>(found);
      scan.count = kAtOnce;
      scan.mask = kWritten;
      scan.returned = kWritten;
      const int count = ioctl(pages, kScan, &scan);
      is_known = count >= 0 && used + static_cast<std::size_t>(count) <= ranges.size();
      for (int k = 0; k < count && is_known; ++k) {
        ranges[used++] = {mapping.offset + (found[k].begin - mapping.begin),
                          found[k].end - found[k].begin};
      }
      at = scan.reached;
    }
  }
  syscall(SYS_close, pages);
  if (!is_known) return std::nullopt;
  return used;
}

std::optional<std::size_t> WrittenPages::take(std::uint64_t inode, std::span<MemoryRange> ranges) {
  // Another thread is here, or this one, interrupted by a signal; it has its own result compared.
  if (is_busy_.exchange(true, std::memory_order_acquire)) return std::nullopt;
  std::optional<std::size_t> taken;
  const std::uint32_t forgotten = forgotten_.load();
  Watched now;
  if (list(inode, now)) {
    taken = scan(now, ranges);
    if (!taken) watch(now);
    // Stores until now may not all have been found: all is compared, once.
    if (forgotten != seen_forgotten_ || !(now == watched_)) taken = std::nullopt;
    watched_ = now;
    seen_forgotten_ = forgotten;
  } else {
    forget();
  }
  is_busy_.store(false, std::memory_order_release);
  return taken;
}

}  // namespace perdura::preload
