// Makes the changes of an operation durable, atomically.
//
// One inode, two fences:
//
//   data, log entries, links of pages ..... flushed ... fence ... tail ... flushed ... fence
//
// Several inodes, or an inode that is created or deleted, three:
//
//   the same ... fence ... journal record ... flushed ... fence ... words ... flushed ... fence
//
// The data that the first fence waits for is not part of any log before the tail points past it, so
// its order does not matter; after the fence the tail may become durable at any time. The operation
// takes effect when the tail, or the journal record, is durable. The record need not be removed:
// recovery stores a word only where the word still has its previous value, and no word ever takes
// an earlier value again. (A tail does not return to a page without a greater version, nor a state
// to an earlier generation.) The last fence allows the next operation of the session to overwrite
// the record, and others to change the words.
//
// Inodes stay locked until all of this is durable, so nobody sees a change that a failure could
// undo.
#include <algorithm>

#include "systems/nova/volume.h"

namespace perdura::systems::nova {

namespace {

// Bytes of entries in the last page, which `end` lies in or at the end of.
Bytes used_in_page(const Log& log) { return log.end - log.pages.back().offset; }

}  // namespace

std::errc Volume::commit(Context& context, Urgency urgency) {
  context.changed.clear();
  for (const Context::PendingEntry& entry : context.entries) {
    if (std::find(context.changed.begin(), context.changed.end(), entry.inode) ==
        context.changed.end()) {
      context.changed.push_back(entry.inode);
    }
  }
  for (Inode* const inode : context.changed) {
    if (reserve_pages(context, *inode, urgency)) continue;
    for (Inode* const other : context.changed) drop_spare(*other);
    return std::errc::no_space_on_device;
  }
  write_entries(context);
  for (Inode* const inode : context.changed) {
    const std::uint64_t after = tail_word(inode->log.version, inode->log.end);
    context.words.push_back(
        {geometry_.inode_offset(inode->number) + kTailWord, inode->log.tail, after});
    inode->log.tail = after;
  }
  change_words(context);
  context.allocated.clear();
  for (const Context::PendingEntry& entry : context.entries) {
    apply(*entry.inode,
          {std::span(context.bytes).subspan(entry.begin, entry.length), entry.offset, entry.page},
          &context.freed);
  }
  // Only now does no durable word refer to them.
  for (const Extent& extent : context.freed) blocks_.free(extent.first, extent.count);
  context.freed.clear();
  for (Inode* const inode : context.changed) collect(context, *inode);
  return {};
}

// Reserves the pages that the entries of this inode's log need.
bool Volume::reserve_pages(Context& context, Inode& inode, Urgency urgency) {
  Log& log = inode.log;
  const Bytes room = geometry_.trailer_in_page();
  Bytes used = log.pages.empty() ? room : used_in_page(log);
  for (const Context::PendingEntry& entry : context.entries) {
    if (entry.inode != &inode) continue;
    if (used + entry.length > room) {
      const Extent page = blocks_.allocate(context.number, 1, urgency);
      if (page.count == 0) return false;
      log.spare.push_back(page.first * kBlock);
      used = 0;
    }
    used += entry.length;
  }
  return true;
}

void Volume::drop_spare(Inode& inode) {
  for (const Bytes page : inode.log.spare) blocks_.free(page / kBlock, 1);
  inode.log.spare.clear();
}

void Volume::write_entries(Context& context) {
  for (Context::PendingEntry& entry : context.entries) {
    Inode& inode = *entry.inode;
    Log& log = inode.log;
    if (log.pages.empty() || used_in_page(log) + entry.length > geometry_.trailer_in_page()) {
      add_page(context, inode);
    }
    entry.offset = log.end;
    entry.page = log.last_page();
    const auto bytes = std::span(context.bytes).subspan(entry.begin, entry.length);
    const std::uint32_t crc = checksum(bytes, inode.number, inode.generation, entry.offset);
    std::memcpy(bytes.data() + offsetof(EntryHeader, crc), &crc, sizeof crc);
    write_metadata(context, entry.offset, bytes);
    log.end += entry.length;
  }
}

// The link to a page counts only once the tail lies in that page, so nothing needs to be durable
// yet.
void Volume::add_page(Context& context, Inode& inode) {
  Log& log = inode.log;
  const Bytes page = log.spare.front();
  log.spare.erase(log.spare.begin());
  const PageTrailer trailer{.inode = inode.number, .generation = inode.generation};
  write_metadata(context, page + geometry_.trailer_in_page(), bytes_of(trailer));
  if (log.pages.empty()) {
    store_metadata(context,
                   geometry_.inode_offset(inode.number) + kHeadWords + (log.version & 1) * kWord,
                   page);
  } else {
    const std::array<std::uint64_t, 2> link{page, used_in_page(log)};
    static_assert(offsetof(PageTrailer, next) == 0 && offsetof(PageTrailer, used) == kWord);
    write_metadata(context, log.pages.back().offset + geometry_.trailer_in_page(), bytes_of(link));
  }
  if (!log.pages.empty() && log.pages.back().live == 0) ++log.dead_pages;
  log.pages.push_back({.offset = page});
  log.end = page;
  count(Happened::log_pages);
}

void Volume::change_words(Context& context) {
  region_.drain();
  if (context.words.size() > 1) {
    JournalRecord record{.count = static_cast<std::uint32_t>(context.words.size()),
                         .sequence = ++context.sequence};
    std::copy(context.words.begin(), context.words.end(), record.words.begin());
    record.crc = checksum(record);
    const Bytes length = offsetof(JournalRecord, words) + record.count * sizeof(JournalWord);
    const Bytes offset = kJournalOffset + context.number * kJournalBytes;
    region_.write(offset, bytes_of(record).first(length));
    region_.flush(offset, length);
    region_.drain();
    context.written.journal += length;
    count(Happened::journaled);
  }
  for (const JournalWord& word : context.words) region_.store(word.offset, word.after);
  // A line that holds several words is flushed once.
  for (std::size_t i = 0; i < context.words.size(); ++i) {
    const Bytes line = context.words[i].offset / kCacheLine;
    const auto is_same = [&](const JournalWord& word) { return word.offset / kCacheLine == line; };
    const auto here = context.words.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::none_of(context.words.begin(), here, is_same)) {
      region_.flush(line * kCacheLine, kCacheLine);
    }
  }
  region_.drain();
  context.written.metadata += context.words.size() * kWord;
}

}  // namespace perdura::systems::nova
