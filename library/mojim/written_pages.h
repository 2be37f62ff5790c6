// Which pages of the file a program may have changed since it was asked the last time, so that the
// primary need not compare all of a large file at each sync point.
//
// The kernel tells which pages were stored to through the mappings of this process (userfaultfd's
// asynchronous write protection with PAGEMAP_SCAN, Linux 6.7), and the file's change time that
// there were no other calls that write. That is all only if no other process uses the file and no
// mapping has come or gone. Whenever something of this is missing or not known, the answer is that
// all pages may have changed.
//
// May be called by any thread and in handlers of signals: neither allocates memory nor takes a
// lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "library/mojim/mappings.h"
#include "services/memory/memory.h"

namespace perdura::mojim {

class WrittenPages {
 public:
  // How many ranges there are in `ranges` now; nothing if all pages may have changed. Whoever asks
  // has them compared, or calls forget().
  std::optional<std::size_t> take(std::uint64_t inode, std::span<services::MemoryRange> ranges);
  // All may have changed: something was mapped, or what was taken has not been compared.
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

}  // namespace perdura::mojim
