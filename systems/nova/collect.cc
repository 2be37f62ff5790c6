// Garbage collection of logs.
//
// Fast collection: pages without live entries are unlinked, each by one atomic word: the inode's
// head, or the link of the previous page. A page with entries that supersede others stays as long
// as there are older pages, which may hold those others.
//
// Thorough collection: when a log has grown to twice its length after the last one, and less than
// half of it is live, the live entries are written to a new log and the tail word switches to it:
// its version's parity selects one of the two heads. If the file system is full, a log of two pages
// is already collected.
//
// A version is never used twice for the same pages (commit.cc relies on it): freeing pages
// increases the version of the log.
#include <algorithm>

#include "systems/nova/volume.h"

namespace perdura::systems::nova {

void Volume::collect(Context& context, Inode& inode) {
  Log& log = inode.log;
  if (log.dead_pages > 0 && log.pages.size() > 1) free_dead_pages(context, inode);
  const std::uint64_t pages = log.pages.size();
  const std::uint64_t least =
      blocks_.available() == 0 ? 2 : std::max(parameters_.gc_pages, 2 * log.collected_at);
  if (pages < least) return;
  log.collected_at = pages;
  if (inode.live_lines() * kCacheLine * 2 <= pages * geometry_.trailer_in_page()) {
    rewrite_log(context, inode);
  }
}

void Volume::free_dead_pages(Context& context, Inode& inode) {
  Log& log = inode.log;
  log.dead_pages = 0;
  context.freed.clear();
  const Bytes head = geometry_.inode_offset(inode.number) + kHeadWords + (log.version & 1) * kWord;
  Bytes link = head;
  bool is_first = true;
  std::size_t gone = 0;
  for (std::size_t i = 0; i + 1 < log.pages.size(); ++i) {
    LogPage& page = log.pages[i];
    if (page.offset == 0) {
      if (is_first) ++gone;
      continue;
    }
    const Bytes own_link = page.offset + geometry_.trailer_in_page();
    if (page.live > 0 || (page.ends_others && !is_first)) {
      link = own_link;
      is_first = false;
      continue;
    }
    // Each page is unlinked on its own. The links are intact in whatever order they become durable:
    // a page that is freed here is not changed before the fence.
    store_metadata(context, link, region_.load(own_link));
    if (link != head) count(Happened::links_changed);
    add_extent(context.freed, std::exchange(page.offset, 0) / kBlock, 1);
    if (is_first) ++gone;
  }
  if (context.freed.empty()) return;
  region_.drain();
  for (const Extent& extent : context.freed) release(extent);
  context.freed.clear();
  log.pages.erase(log.pages.begin(), log.pages.begin() + static_cast<std::ptrdiff_t>(gone));
  log.first_page += gone;
  log.version = (log.version + 2) % kVersions;
  count(Happened::fast_collections);
  if (geometry_.owner != nullptr) [[unlikely]]
    geometry_.owner->changed(inode.number);
}

void Volume::add_all_entries(Context& context, Inode& inode) {
  context.begin();
  const auto copy = [&](Bytes offset, std::uint16_t lines) {
    const std::size_t begin = context.bytes.size();
    const Bytes length = lines * kCacheLine;
    context.bytes.resize(begin + length);
    region_.read(offset, std::span(context.bytes).subspan(begin));
    context.entries.push_back({&inode, begin, length, 0, 0});
  };
  const auto header = [&](EntryType type, std::uint8_t flags, fs::Timestamp time) {
    return EntryHeader{.type = type,
                       .flags = flags,
                       .seconds = time.seconds,
                       .nanoseconds = time.nanoseconds,
                       .mode = inode.mode};
  };
  if (inode.is(S_IFREG)) {
    context.add(inode, SizeEntry{header(EntryType::size, 0, inode.modified), inode.size});
    WriteEntry run;
    const auto end_run = [&] {
      if (run.count > 0) context.add(inode, run);
    };
    inode.blocks.visit(0, ~std::uint64_t{0}, [&](std::uint64_t index, Mapped mapped) {
      const std::uint8_t flags = mapped.is_unwritten() ? kUnwritten : 0;
      if (run.count > 0 && index == run.file_block + run.count &&
          mapped.block() == run.block + run.count && flags == run.header.flags) {
        ++run.count;
        return true;
      }
      end_run();
      run = {header(EntryType::write, flags, inode.modified), index, mapped.block(), 1, inode.size};
      return true;
    });
    end_run();
  }
  if (inode.directory != nullptr) {
    inode.directory->visit(0, [&](const Name& name) {
      copy(name.offset, name.lines);
      return true;
    });
  }
  if (inode.extended != nullptr) {
    for (const auto& [name, value] : *inode.extended) copy(value.offset, value.lines);
  }
  context.add(inode, attributes_entry(inode));
}

bool Volume::rewrite_log(Context& context, Inode& inode) {
  add_all_entries(context, inode);
  Log old = std::move(inode.log);
  inode.log = Log{.tail = old.tail, .version = (old.version + 1) % kVersions};
  if (!reserve_pages(context, inode, Urgency::frees)) {
    drop_spare(inode);
    inode.log = std::move(old);
    return false;
  }
  write_entries(context);
  const std::uint64_t tail = tail_word(inode.log.version, inode.log.end);
  context.words.assign({{geometry_.inode_offset(inode.number) + kTailWord, old.tail, tail}});
  // change_words() makes the new log and its head durable before the word that switches to them.
  change_words(context);
  tell_owner(context.words);
  const std::vector<LogPage> pages = inode.log.pages;
  const Bytes end = inode.log.end;
  const fs::Timestamp created = inode.created;
  inode.forget_log();
  inode.created = created;
  inode.log = Log{.tail = tail, .version = version_of(tail), .end = end};
  for (const LogPage& page : pages) inode.log.pages.push_back({.offset = page.offset});
  for (const Context::PendingEntry& entry : context.entries) {
    apply(inode,
          {std::span(context.bytes).subspan(entry.begin, entry.length), entry.offset, entry.page},
          nullptr);
  }
  inode.log.collected_at = pages.size();
  for (const LogPage& page : old.pages) {
    if (page.offset != 0) release({page.offset / kBlock, 1});
  }
  count(Happened::thorough_collections);
  return true;
}

}  // namespace perdura::systems::nova
