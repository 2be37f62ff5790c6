#include "library/mojim/sent_contents.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "platform/base/error.h"

namespace perdura::mojim {

using services::MemoryRange;

SentContents::SentContents(std::span<const std::byte> file)
    : file_(file), unsent_(file.size() / kPage) {
  // Pages that are never written take no memory, as those of a file that is mostly empty.
  void* const memory = ::mmap(nullptr, file.size(), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw PlatformError(fmt::format("no memory for what the copies have, {} bytes: {}", file.size(),
                                    std::strerror(errno)));
  }
  sent_ = static_cast<std::byte*>(memory);
  for (Bytes at = 0; at < file.size(); at += kPage) {
    if (std::memcmp(sent_ + at, file.data() + at, kPage) == 0) continue;
    std::memcpy(sent_ + at, file.data() + at, kPage);
  }
}

SentContents::~SentContents() { ::munmap(sent_, file_.size()); }

void SentContents::look(MemoryRange range) {
  if (range.offset >= file_.size()) return;
  const Bytes length = std::min(range.length, file_.size() - range.offset);
  const std::size_t end = round_up(range.offset + length, kPage) / kPage;
  for (std::size_t page = range.offset / kPage; page < end; ++page) {
    if (std::memcmp(line(page, 0), sent_line(page, 0), kPage) != 0) {
      for (std::size_t number = 0; number < kLines; ++number) {
        if (std::memcmp(line(page, number), sent_line(page, number), kCacheLine) == 0) continue;
        unsent_[page] |= std::uint64_t{1} << number;
        std::memcpy(sent_line(page, number), line(page, number), kCacheLine);
      }
    }
    if (unsent_[page] != 0) looked_at_.push_back(page);
  }
}

std::vector<MemoryRange> SentContents::unsent() {
  std::sort(looked_at_.begin(), looked_at_.end());
  looked_at_.erase(std::unique(looked_at_.begin(), looked_at_.end()), looked_at_.end());
  std::vector<MemoryRange> ranges;
  for (const std::size_t page : looked_at_) {
    for (std::size_t number = 0; number < kLines; ++number) {
      if ((unsent_[page] >> number & 1) == 0) continue;
      const Bytes offset = page * kPage + number * kCacheLine;
      if (!ranges.empty() && ranges.back().offset + ranges.back().length == offset) {
        ranges.back().length += kCacheLine;
      } else {
        ranges.push_back({offset, kCacheLine});
      }
    }
  }
  return ranges;
}

void SentContents::note_sent() {
  for (const std::size_t page : looked_at_) {
    for (std::size_t number = 0; number < kLines; ++number) {
      if (std::memcmp(line(page, number), sent_line(page, number), kCacheLine) == 0) {
        unsent_[page] &= ~(std::uint64_t{1} << number);
      }
    }
  }
  looked_at_.clear();
}

}  // namespace perdura::mojim
