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

#include "systems/nova/layout_callbacks.h"
#include "systems/nova/volume.h"

namespace perdura::systems::nova {

namespace {

// Bytes of entries in the last page, which `end` lies in or at the end of.
Bytes used_in_page(const Log& log) { return log.end - log.pages.back().offset; }

// The flags that an entry may have which somebody else has made; nothing if it must not have that
// type.
std::optional<int> flags_of_others(EntryType type) {
  switch (type) {
    case EntryType::write:
      return kUnwritten | kExtends;
    case EntryType::size:
      return kCuts;
    case EntryType::attributes:
      return kKeepsLinks;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::errc Volume::commit(Context& context, Urgency urgency, bool is_applied_later) {
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
  if (!is_local_) [[unlikely]]
    tell_others(context);
  if (is_applied_later) [[unlikely]] {
    let_entries_wait(context);
    return {};
  }
  for (const Context::PendingEntry& entry : context.entries) {
    apply(*entry.inode,
          {std::span(context.bytes).subspan(entry.begin, entry.length), entry.offset, entry.page},
          &context.freed);
  }
  if (!is_local_ && callbacks_ != nullptr) [[unlikely]]
    tell_of_layouts(context);
  // Only now does no durable word refer to them.
  for (const Extent& extent : context.freed) release(extent);
  context.freed.clear();
  for (Inode* const inode : context.changed) collect(context, *inode);
  return {};
}

// Does what only volumes with an owner, with a delay or with callbacks need when an operation has
// taken effect. The pages of new entries are marked before the release of what entries replace,
// since one operation may write to a page and replace it.
void Volume::tell_others(const Context& context) {
  if (is_delaying()) free_waiting(Executor::current().now());
  if (geometry_.owner == nullptr) return;
  for (const Context::PendingEntry& entry : context.entries) {
    WriteEntry write;
    std::memcpy(static_cast<void*>(&write), context.bytes.data() + entry.begin, sizeof write);
    if (write.header.type == EntryType::write && geometry_.is_elsewhere(write.block)) {
      geometry_.owner->mark_used(write.block, write.count);
    }
  }
  tell_owner(context.words);
}

std::errc Volume::append(Context& context, Inode& inode, std::span<const std::byte> entries,
                         Urgency urgency) {
  apply_waiting(inode);
  return append(context, inode, entries, urgency, false);
}

std::errc Volume::append(Context& context, Inode& inode, std::span<const std::byte> entries,
                         Urgency urgency, Later) {
  return append(context, inode, entries, urgency, true);
}

std::errc Volume::append(Context& context, Inode& inode, std::span<const std::byte> entries,
                         Urgency urgency, bool is_applied_later) {
  if (const std::errc error = use(inode); error != std::errc{}) return error;
  if (!add_made(context, inode, entries)) return std::errc::invalid_argument;
  return context.entries.empty() ? std::errc{} : commit(context, urgency, is_applied_later);
}

void Volume::let_entries_wait(const Context& context) {
  for (const Context::PendingEntry& entry : context.entries) {
    auto& waiting = entry.inode->waiting;
    if (waiting == nullptr) waiting = std::make_unique<std::vector<AppendedEntry>>();
    AppendedEntry& added = waiting->emplace_back();
    std::memcpy(added.bytes.data(), context.bytes.data() + entry.begin, added.bytes.size());
    added.offset = entry.offset;
    added.page = entry.page;
  }
}

void Volume::apply_waiting(Inode& inode) {
  if (inode.waiting == nullptr) return;
  std::vector<Extent> freed;
  for (const AppendedEntry& entry : *inode.waiting) {
    apply(inode, {entry.bytes, entry.offset, entry.page}, &freed);
  }
  inode.waiting.reset();
  for (const Extent& extent : freed) release(extent);
}

void Volume::catch_up(Context& context, Inode& inode) {
  apply_waiting(inode);
  if (use(inode) == std::errc{}) collect(context, inode);
}

// Starts an operation with entries that somebody else has made. Returns false if one of them is
// impossible.
bool Volume::add_made(Context& context, Inode& inode, std::span<const std::byte> entries) {
  context.begin();
  if (entries.size() % kCacheLine != 0) return false;
  context.bytes.assign(entries.begin(), entries.end());
  for (std::size_t begin = 0; begin < entries.size(); begin += kCacheLine) {
    const EntryView entry{std::span<const std::byte>(context.bytes).subspan(begin, kCacheLine)};
    const auto header = entry.as<EntryHeader>();
    const std::optional<int> flags = flags_of_others(header.type);
    if (!flags || header.lines != 1 || (header.flags & ~*flags) != 0 ||
        !problem_with(geometry_, inode, entry).empty()) {
      return false;
    }
    context.entries.push_back({&inode, begin, kCacheLine, 0, 0});
  }
  return true;
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

void Volume::tell_owner(std::span<const JournalWord> words) {
  if (geometry_.owner == nullptr) return;
  const auto number_of = [this](const JournalWord& word) {
    return (word.offset - geometry_.inode_table) / sizeof(InodeRecord) + 1;
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint64_t number = number_of(words[i]);
    const auto is_same = [&](const JournalWord& word) { return number_of(word) == number; };
    if (std::none_of(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i), is_same)) {
      geometry_.owner->changed(number);
    }
  }
}

// --- what was freed

void Volume::release_later(const Extent& extent) {
  if (callbacks_ != nullptr && callbacks_->cm_keeps(extent)) return;
  if (!is_delaying()) return free_now(extent);
  const Time until = Executor::current().now() + parameters_.free_delay;
  waiting_lock_.lock();
  waiting_.push_back({until, extent});
  waiting_lock_.unlock();
}

void Volume::free_now(const Extent& extent) {
  if (geometry_.is_elsewhere(extent.first)) {
    geometry_.owner->free(extent.first, extent.count);
  } else {
    blocks_.free(extent.first, extent.count);
  }
}

// Nobody follows any more what has been committed before.
bool Volume::is_over(const WaitingExtent& waiting, Time now) {
  if (waiting.until > now) return false;
  if (geometry_.owner == nullptr || now == Time::max()) return true;
  return waiting.until - parameters_.free_delay <=
         geometry_.owner->seen_until(now - parameters_.free_delay);
}

void Volume::free_waiting(Time now) {
  for (;;) {
    waiting_lock_.lock();
    std::optional<Extent> extent;
    if (!waiting_.empty() && is_over(waiting_.front(), now)) {
      extent = waiting_.front().extent;
      waiting_.pop_front();
    }
    waiting_lock_.unlock();
    if (!extent) return;
    free_now(*extent);
  }
}

std::uint64_t Volume::waiting_pages() {
  waiting_lock_.lock();
  std::uint64_t count = 0;
  for (const WaitingExtent& waiting : waiting_) {
    if (geometry_.is_elsewhere(waiting.extent.first)) count += waiting.extent.count;
  }
  waiting_lock_.unlock();
  return count;
}

std::optional<Time> Volume::next_free() {
  waiting_lock_.lock();
  std::optional<Time> next;
  const Time now = Executor::current().now();
  if (!waiting_.empty()) next = waiting_.front().until;
  // The delay of what has been seen only lately has not passed.
  if (next && *next <= now && !is_over(waiting_.front(), now)) {
    next = now + parameters_.free_delay / 8;
  }
  waiting_lock_.unlock();
  return next;
}

}  // namespace perdura::systems::nova
