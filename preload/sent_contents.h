// Finds the lines of a replicated file that the copies lack.
//
// Programs change a file in many ways: by stores to mappings, by dozens of system calls, in other
// processes. No list of these is complete, so nothing is intercepted. Instead the primary keeps, in
// its own memory, the contents that the copies have, and compares: lines that differ have not been
// sent.
//
//   contents.look(range);                  // finds what differs, and takes a copy of it
//   send(contents.take_unsent(ranges));    // from the file
//   contents.note_sent();                  // not if that failed: the lines stay unsent
//
// Others may change the file meanwhile. A line that has changed since it was looked at may have
// been sent in either state, so it counts as unsent. Belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "services/memory/memory.h"

namespace perdura::preload {

class SentContents {
 public:
  static constexpr Bytes kPage = 4 * KiB;

  // The copies have the file as it is now. It consists of whole pages, and must outlive this.
  explicit SentContents(std::span<const std::byte> file);
  ~SentContents();
  SentContents(const SentContents&) = delete;
  SentContents& operator=(const SentContents&) = delete;

  // Finds the lines that differ in those pages of a range that are in the file.
  void look(services::MemoryRange range);
  // Returns the unsent parts of the pages of these ranges, as far as look() has found them:
  // ascending runs of lines that do not touch.
  std::vector<services::MemoryRange> take_unsent(std::span<const services::MemoryRange> ranges);
  // The copies have what was taken last.
  void note_sent();

 private:
  static constexpr std::size_t kLines = kPage / kCacheLine;
  static_assert(kLines == 64);

  // The pages of a range that are in the file, from the first to one after the last.
  struct Pages {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  Pages pages_of(services::MemoryRange range) const;
  void look_at(std::size_t page);
  const std::byte* line(std::size_t page, std::size_t number) const {
    return file_.data() + page * kPage + number * kCacheLine;
  }
  std::byte* sent_line(std::size_t page, std::size_t number) {
    return sent_ + page * kPage + number * kCacheLine;
  }

  std::span<const std::byte> file_;
  std::byte* sent_ = nullptr;          // as the copies have it, but for unsent lines
  std::vector<std::uint64_t> unsent_;  // by page, a bit for each line
  std::vector<std::size_t> taken_;     // pages
};

}  // namespace perdura::preload
