#include "systems/orion/client/inodes.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/runtime/work.h"

namespace perdura::systems::orion {

using nova::end_of;
using nova::version_of;

namespace {

constexpr int kMostTries = 64;
constexpr int kMostLooks = 48;
constexpr Picoseconds kBetweenLooks = Microseconds(1);
constexpr std::uint32_t kNoBuffer = ~std::uint32_t{0};
// Entries of a directory and extended attributes are read in the log; of other inodes only the last
// page is kept, for the session's own entries.
bool keeps_pages(const nova::Inode& inode) {
  return inode.directory != nullptr || inode.extended != nullptr;
}

}  // namespace

Inodes::Inodes(Thread& thread, MdsLink& link, PageCache& pages, FileSystem& files)
    : link_(link),
      pages_(pages),
      files_(files),
      memory_(thread.node.create_region(
          fmt::format("orion logs of port {}", thread.endpoint.address().port),
          files.parameters().cached_log_pages * kPage, pmem::Medium::dram)),
      registered_(thread.endpoint.register_memory(*memory_, fabric::Access::local)) {
  for (std::uint64_t i = files.parameters().cached_log_pages; i > 0; --i) {
    free_.push_back(static_cast<std::uint32_t>(i - 1));
  }
}

Task<Inodes::Use> Inodes::use(fs::InodeNumber identity) {
  const std::uint64_t number = number_of(identity);
  std::unique_ptr<CachedInode>& slot = inodes_[number];
  if (!slot) {
    slot = std::make_unique<CachedInode>();
    slot->inode.number = number;
  }
  CachedInode& inode = *slot;
  while (inode.busy) co_await wait(inode.waiting);
  inode.busy = true;
  inode.identity = identity;
  inode.refusals = 0;
  inode.used = ++clock_;
  co_return Use(*this, inode);
}

void Inodes::end(CachedInode& inode) {
  inode.busy = false;
  if (inode.waiting.wake_one() || inode.inode.loaded) return;
  inodes_.erase(inode.inode.number);
}

bool Inodes::is_fresh(const CachedInode& inode) const {
  return Executor::current().now() - inode.checked < files_.parameters().free_delay;
}

Task<bool> Inodes::is_current(CachedInode& inode) {
  // A copy of before may contain what a failure has undone.
  if (inode.connection != link_.connection()) co_return false;
  if (is_fresh(inode)) co_return true;
  const Time begun = Executor::current().now();
  InodeWords words;
  const bool is_read = co_await link_.read_words(inode.inode.number, words);
  const bool is_same = is_read && words.exists() && words.generation() == inode.inode.generation &&
                       words.tail == inode.inode.log.tail && inode.unconfirmed == 0;
  if (is_same) {
    inode.checked = begun;
  } else {
    ++counts_.late_reads;
  }
  co_return is_same;
}

// --- buffers

fabric::LocalBuffer Inodes::buffer(std::uint32_t number, Bytes from, Bytes length) const {
  return registered_.local(number * kPage + from, static_cast<std::uint32_t>(length));
}

bool Inodes::take_buffer(const CachedInode& owner, std::uint32_t& taken) {
  while (free_.empty()) {
    if (!evict_one(owner)) return false;
  }
  taken = free_.back();
  free_.pop_back();
  return true;
}

// Forgets the inode that was not used for the longest time.
bool Inodes::evict_one(const CachedInode& except) {
  CachedInode* oldest = nullptr;
  for (const auto& [number, inode] : inodes_) {
    if (inode->busy || inode.get() == &except || !inode->waiting.empty()) continue;
    if (oldest == nullptr || inode->used < oldest->used) oldest = inode.get();
  }
  if (oldest == nullptr) return false;
  forget(*oldest);
  inodes_.erase(oldest->inode.number);
  return true;
}

void Inodes::forget(CachedInode& inode) {
  inode.inode.blocks.visit(0, ~std::uint64_t{0}, [&](std::uint64_t, nova::Mapped mapped) {
    pages_.drop(mapped.block(), 1);
    return true;
  });
  for (const std::uint32_t buffer : inode.buffers) {
    if (buffer != kNoBuffer) free_.push_back(buffer);
  }
  inode.buffers.clear();
  inode.inode.forget_log();
  inode.inode.loaded = inode.inode.exists = false;
  inode.unconfirmed = 0;
}

// --- following the MDS

Task<bool> Inodes::look(const CachedInode& inode, InodeWords& words, LaterLook* later) {
  if (later == nullptr) return link_.read_words(inode.inode.number, words);
  return link_.read_words(inode.inode.number, words, later->inode, later->words);
}

Task<std::errc> Inodes::refresh(CachedInode& inode, LaterLook* later) {
  if (!co_await link_.connect()) co_return std::errc::not_connected;
  if (inode.inode.number == 0 || inode.inode.number > link_.geometry().inodes) {
    co_return std::errc::no_such_file_or_directory;
  }
  if (files_.holds().is_lost(inode.identity)) {
    co_return std::errc::no_such_file_or_directory;
  }
  for (int tries = 0; tries < kMostTries; ++tries) {
    const Time begun = Executor::current().now();
    InodeWords words;
    if (!co_await look(inode, words, later)) co_return std::errc::not_connected;
    if (!words.exists()) {
      forget(inode);
      co_return std::errc::no_such_file_or_directory;
    }
    const std::errc error = co_await update(inode, words);
    if (error == std::errc::not_connected || error == std::errc::not_enough_memory) {
      co_return error;
    }
    if (error == std::errc::resource_unavailable_try_again) {
      co_await sleep_for(kBetweenLooks);
      continue;
    }
    inode.checked = begun;
    if (error == std::errc{} && is_fresh(inode)) {
      inode.inode.parent_word = words.parent;
      co_return error;
    }
    // The log was collected, or its pages were reused, while they were READ; or it is damaged.
    if (error == std::errc{}) ++counts_.late_reads;
    if (error != std::errc{}) forget(inode);
  }
  co_return std::errc::io_error;
}

Task<std::errc> Inodes::update(CachedInode& inode, const InodeWords& words) {
  nova::Inode& copy = inode.inode;
  const bool is_same_log = copy.loaded && inode.connection == link_.connection() &&
                           copy.generation == words.generation() &&
                           version_of(copy.log.tail) == version_of(words.tail);
  if (is_same_log && copy.log.tail == words.tail) {
    inode.unconfirmed = 0;
    inode.confirmed = copy.log.end;
    co_return std::errc{};
  }
  if (is_same_log && inode.unconfirmed == 0) co_return co_await extend(inode, words);
  // The session's own commits are still on their way.
  if (is_same_log && end_of(words.tail) < copy.log.end && ++inode.looks < kMostLooks) {
    co_return std::errc::resource_unavailable_try_again;
  }
  inode.looks = 0;
  if (copy.loaded) {
    ++counts_.rebuilds;
    files_.count(Counted::rebuilds, 1);
  }
  co_return co_await rebuild(inode, words);
}

Task<std::errc> Inodes::rebuild(CachedInode& inode, const InodeWords& words) {
  const std::uint64_t connection = link_.connection();
  forget(inode);
  nova::InodeRecord record;
  if (!co_await link_.read_record(inode.inode.number, record)) co_return std::errc::not_connected;
  nova::Inode& copy = inode.inode;
  if (!nova::problem_with(link_.geometry(), copy.number, record.base).empty() ||
      record.base.generation != words.generation()) {
    co_return std::errc::io_error;
  }
  inode.base = record.base;
  copy.begin(record.base);
  inode.connection = connection;
  copy.loaded = copy.exists = true;
  copy.log.tail = words.tail;
  copy.log.version = version_of(words.tail);
  const Bytes end = end_of(words.tail);
  std::errc error{};
  if (end != 0) error = co_await follow_pages(inode, words.head[copy.log.version & 1], end);
  if (error == std::errc{}) inode.confirmed = copy.log.end;
  co_return error;
}

Task<std::errc> Inodes::extend(CachedInode& inode, const InodeWords& words) {
  nova::Inode& copy = inode.inode;
  ++counts_.extensions;
  files_.count(Counted::extensions, 1);
  const Bytes end = end_of(words.tail);
  if (copy.log.pages.empty()) {
    copy.log.tail = words.tail;
    co_return co_await follow_pages(inode, words.head[version_of(words.tail) & 1], end);
  }
  const Bytes page = copy.log.pages.back().offset;
  const Bytes from = copy.log.end - page;
  const bool is_last = end >= page && end - page <= link_.geometry().trailer_in_page();
  const Bytes to = is_last ? end - page : link_.geometry().log_page_bytes;
  if (to < from) co_return std::errc::io_error;
  if (!co_await read_page(inode, copy.log.pages.size() - 1, from, to - from)) {
    co_return std::errc::not_connected;
  }
  std::errc error{};
  if (is_last) {
    if (!apply_entries(inode, from, to)) co_return std::errc::io_error;
    copy.log.end = end;
  } else {
    const auto trailer = memory_->read_object<nova::PageTrailer>(
        inode.buffers.back() * kPage + link_.geometry().trailer_in_page());
    if (trailer.used < from || trailer.used > link_.geometry().trailer_in_page() ||
        !apply_entries(inode, from, trailer.used)) {
      co_return std::errc::io_error;
    }
    error = co_await follow_pages(inode, trailer.next, end);
  }
  copy.log.tail = words.tail;
  inode.confirmed = copy.log.end;
  co_return error;
}

Task<bool> Inodes::read_page(const CachedInode& inode, std::size_t index, Bytes from,
                             Bytes length) {
  if (length == 0) co_return true;
  co_return co_await link_.read(inode.inode.log.pages[index].offset + from,
                                buffer(inode.buffers[index], from, length));
}

bool Inodes::add_page(CachedInode& inode, Bytes page) {
  std::uint32_t buffer = 0;
  if (!inode.buffers.empty() && !keeps_pages(inode.inode)) {
    free_.push_back(std::exchange(inode.buffers.back(), kNoBuffer));
  }
  if (!take_buffer(inode, buffer)) return false;
  inode.inode.log.pages.push_back({.offset = page});
  inode.buffers.push_back(buffer);
  return true;
}

// READs the pages from `page` to the one in which the log ends, and applies their entries.
Task<std::errc> Inodes::follow_pages(CachedInode& inode, Bytes page, Bytes end) {
  const nova::Geometry& geometry = link_.geometry();
  nova::Log& log = inode.inode.log;
  const Bytes last = end / kPage * kPage;
  if (end - last > geometry.trailer_in_page()) co_return std::errc::io_error;
  for (std::uint64_t seen = 0;; ++seen) {
    if (page % kPage != 0 || !geometry.is_data(page / kPage) || seen > geometry.blocks) {
      co_return std::errc::io_error;
    }
    if (!add_page(inode, page)) co_return std::errc::not_enough_memory;
    const Bytes length = page == last ? end - last : geometry.log_page_bytes;
    if (!co_await read_page(inode, log.pages.size() - 1, 0, length)) {
      co_return std::errc::not_connected;
    }
    if (page == last) {
      if (!apply_entries(inode, 0, end - last)) co_return std::errc::io_error;
      break;
    }
    const auto trailer = memory_->read_object<nova::PageTrailer>(inode.buffers.back() * kPage +
                                                                 geometry.trailer_in_page());
    if (trailer.inode != inode.inode.number || trailer.generation != inode.inode.generation ||
        trailer.used > geometry.trailer_in_page() || !apply_entries(inode, 0, trailer.used)) {
      co_return std::errc::io_error;
    }
    page = trailer.next;
  }
  log.end = end;
  co_return std::errc{};
}

bool Inodes::apply_entries(CachedInode& inode, Bytes from, Bytes to) {
  nova::Inode& copy = inode.inode;
  const Bytes local = inode.buffers.back() * kPage;
  const std::span<const std::byte> page(memory_->data() + local, kPage);
  for (Bytes at = from; at < to;) {
    nova::EntryHeader header;
    std::memcpy(static_cast<void*>(&header), page.data() + at, sizeof header);
    const Bytes length = header.lines * kCacheLine;
    if (length == 0 || length > std::min<Bytes>(nova::kLargestEntry, to - at)) return false;
    const auto bytes = page.subspan(at, length);
    if (header.crc != nova::checksum(bytes, copy.number, copy.generation,
                                     copy.log.pages.back().offset + at) ||
        !nova::problem_with(link_.geometry(), copy, {bytes, local + at, copy.log.last_page()})
             .empty()) {
      return false;
    }
    apply_one(inode, bytes, local + at, false);
    at += length;
  }
  return true;
}

void Inodes::apply_one(CachedInode& inode, std::span<const std::byte> bytes, Bytes local,
                       bool is_own) {
  std::vector<nova::Extent> freed;
  const nova::EntryView entry{bytes, local, inode.inode.log.last_page()};
  apply(inode.inode, entry, &freed);
  for (const nova::Extent& extent : freed) pages_.drop(extent.first, extent.count);
  if (is_own || entry.as<nova::EntryHeader>().type != nova::EntryType::write) return;
  // Somebody may have written to space that was allocated before, in place.
  const auto write = entry.as<nova::WriteEntry>();
  if (write.block != 0) pages_.drop(write.block, write.count);
}

// --- the session's own entries

bool Inodes::fits(const CachedInode& inode, Bytes length) const {
  const nova::Log& log = inode.inode.log;
  return !log.pages.empty() &&
         log.end - log.pages.back().offset + length <= link_.geometry().trailer_in_page();
}

Task<> Inodes::add_own(CachedInode& inode, std::span<const std::byte> entries, std::uint64_t tail) {
  nova::Log& log = inode.inode.log;
  const Bytes end = end_of(tail);
  const bool is_same_log = version_of(tail) == version_of(log.tail);
  // If the entries went into a new page, or the log was collected, the copy follows at its next use.
  if (is_same_log && fits(inode, entries.size()) && log.end + entries.size() == end) {
    add_unconfirmed(inode, entries);
    log.tail = tail;
    inode.unconfirmed = 0;
    inode.confirmed = log.end;
    co_return;
  }
  co_return;
}

void Inodes::add_unconfirmed(CachedInode& inode, std::span<const std::byte> entries) {
  nova::Log& log = inode.inode.log;
  const Bytes local = inode.buffers.back() * kPage + (log.end - log.pages.back().offset);
  copy_bytes(std::span(memory_->data() + local, entries.size()), entries);
  for (std::size_t at = 0; at < entries.size();) {
    nova::EntryHeader header;
    std::memcpy(static_cast<void*>(&header), entries.data() + at, sizeof header);
    const std::size_t length = header.lines * kCacheLine;
    apply_one(inode, std::span<const std::byte>(memory_->data() + local + at, length), local + at,
              true);
    at += length;
  }
  log.end += entries.size();
  log.tail = nova::tail_word(version_of(log.tail), log.end);
  ++inode.unconfirmed;
}

}  // namespace perdura::systems::orion
