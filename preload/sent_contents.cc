#include "preload/sent_contents.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "platform/base/error.h"

namespace perdura::preload {

using services::MemoryRange;

SentContents::SentContents(std::span<const std::byte> file)
    : file_(file), unsent_(file.size() / kPage) {
  // Pages that are never written take no memory, such as those of a mostly empty file.
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

SentContents::Pages SentContents::pages_of(MemoryRange range) const {
  if (range.offset >= file_.size() || range.length == 0) return {};
  const Bytes length = std::min(range.length, file_.size() - range.offset);
  return {range.offset / kPage, round_up(range.offset + length, kPage) / kPage};
}

void SentContents::look(MemoryRange range) {
  const Pages pages = pages_of(range);
  for (std::size_t page = pages.begin; page < pages.end; ++page) look_at(page);
}

void SentContents::look_at(std::size_t page) {
  if (std::memcmp(line(page, 0), sent_line(page, 0), kPage) == 0) return;
  for (std::size_t number = 0; number < kLines; ++number) {
    if (std::memcmp(line(page, number), sent_line(page, number), kCacheLine) == 0) continue;
    unsent_[page] |= std::uint64_t{1} << number;
    std::memcpy(sent_line(page, number), line(page, number), kCacheLine);
  }
}

std::vector<MemoryRange> SentContents::take_unsent(std::span<const MemoryRange> ranges) {
  taken_.clear();
  for (const MemoryRange& range : ranges) {
    const Pages pages = pages_of(range);
    for (std::size_t page = pages.begin; page < pages.end; ++page) {
      if (unsent_[page] != 0) taken_.push_back(page);
    }
  }
  std::sort(taken_.begin(), taken_.end());
  taken_.erase(std::unique(taken_.begin(), taken_.end()), taken_.end());
  std::vector<MemoryRange> lines;
  for (const std::size_t page : taken_) {
    look_at(page);  // it may have changed since look()
    for (std::size_t number = 0; number < kLines; ++number) {
      if ((unsent_[page] >> number & 1) == 0) continue;
      const Bytes offset = page * kPage + number * kCacheLine;
      if (!lines.empty() && lines.back().offset + lines.back().length == offset) {
        lines.back().length += kCacheLine;
      } else {
        lines.push_back({offset, kCacheLine});
      }
    }
  }
  return lines;
}

void SentContents::note_sent() {
  for (const std::size_t page : taken_) {
    for (std::size_t number = 0; number < kLines; ++number) {
      if (std::memcmp(line(page, number), sent_line(page, number), kCacheLine) == 0) {
        unsent_[page] &= ~(std::uint64_t{1} << number);
      }
    }
  }
  taken_.clear();
}

}  // namespace perdura::preload
