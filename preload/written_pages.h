// The pages of the file that a program may have changed since the last time, so that the primary
// need not compare the whole of a large file at each sync point.
//
// The kernel tells which pages were stored to through the mappings of this process (userfaultfd's
// asynchronous write protection with PAGEMAP_SCAN, Linux 6.7). That is all only if no mapping has
// come or gone, if no other process uses the file (Requests::uses()), and if no call has written to
// it, which the primary learns from inotify. If anything of this is missing or not known, all pages
// may have changed.
//
// May be called by any thread and in signal handlers: neither allocates memory nor takes a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "preload/mappings.h"
#include "services/memory/memory.h"

namespace perdura::preload {

class WrittenPages {
 public:
  // Fills `ranges` with the changed ones and returns their number; nothing if all pages may have
  // changed. The caller has them compared, or calls forget().
  std::optional<std::size_t> take(std::uint64_t inode, std::span<services::MemoryRange> ranges);
  // From now on all pages may have changed: something was mapped, or what was taken has not been
  // compared.
  void forget() { forgotten_.fetch_add(1); }

 private:
  static constexpr std::size_t kMostMappings = 16;
  struct Watched {
    std::size_t count = 0;
    Mapping mappings[kMostMappings];
    bool operator==(const Watched& other) const;
  };

  std::optional<std::size_t> scan(const Watched& now, std::span<services::MemoryRange> ranges);
  void watch(const Watched& now);
  static bool list(std::uint64_t inode, Watched& now);

  std::atomic<bool> is_busy_{false};
  std::atomic<std::uint32_t> forgotten_{1};
  // The result of the last call.
  std::uint32_t seen_forgotten_ = 0;
  Watched watched_;
  int userfault_ = -1;
  int opened_ = 0;
};

}  // namespace perdura::preload
