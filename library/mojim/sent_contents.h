// Which lines of a replicated file the copies lack.
//
// Programs change a file in many ways: by stores to mappings, by dozens of system calls, in other
// processes. No list of them is complete, so nobody is asked. Instead the primary keeps, in its own
// memory, the contents that the copies have, and compares: what differs has not been sent.
//
//   contents.look(range);                        // finds what differs, and takes a copy of it
//   send(contents.unsent());                     // from the file
//   contents.note_sent();                        // or nothing, if it failed: so it is unsent still
//
// Others may change the file meanwhile. A line that is not as it was when it was looked at may have
// been sent as it was or as it is, so it counts as unsent. Belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "services/memory/memory.h"

namespace perdura::mojim {

class SentContents {
 public:
  static constexpr Bytes kPage = 4 * KiB;

  // The copies have the file as it is now. It is whole pages, and outlives this.
  explicit SentContents(std::span<const std::byte> file);
  ~SentContents();
  SentContents(const SentContents&) = delete;
  SentContents& operator=(const SentContents&) = delete;

  // Looks at the pages of a range, as far as that is in the file.
  void look(services::MemoryRange range);
  // What of the pages that were looked at since the last note_sent() or leave() is unsent: runs of
  // lines, ascending and apart.
  std::vector<services::MemoryRange> unsent();
  // The copies have what unsent() has returned.
  void note_sent();
  // They may have it or not.
  void leave() { looked_at_.clear(); }

 private:
  static constexpr std::size_t kLines = kPage / kCacheLine;
  static_assert(kLines == 64);

  const std::byte* line(std::size_t page, std::size_t number) const {
    return file_.data() + page * kPage + number * kCacheLine;
  }
  std::byte* sent_line(std::size_t page, std::size_t number) {
    return sent_ + page * kPage + number * kCacheLine;
  }

  std::span<const std::byte> file_;
  std::byte* sent_ = nullptr;           // as the copies have it, but for unsent lines
  std::vector<std::uint64_t> unsent_;   // by page, a bit for each line
  std::vector<std::size_t> looked_at_;  // pages that have unsent lines
};

}  // namespace perdura::mojim
