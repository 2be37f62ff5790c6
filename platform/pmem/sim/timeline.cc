#include "platform/pmem/sim/timeline.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

namespace perdura::pmem::sim {

void Earliest::add(Time moment) {
  added_.push_back(moment);
  std::push_heap(added_.begin(), added_.end(), std::greater<>());
}

void Earliest::remove(Time moment) {
  removed_.push_back(moment);
  std::push_heap(removed_.begin(), removed_.end(), std::greater<>());
  while (!removed_.empty() && removed_.front() == added_.front()) {
    for (std::vector<Time>* heap : {&added_, &removed_}) {
      std::pop_heap(heap->begin(), heap->end(), std::greater<>());
      heap->pop_back();
    }
  }
}

void Timeline::change(Time now, Bytes offset, std::span<const std::byte> bytes, Writer writer,
                      LineTimes visible, StoringThread* thread) {
  if (bytes.empty()) return;
  forget_before(now);
  const Bytes lines = (offset + bytes.size() - 1) / kCacheLine - offset / kCacheLine + 1;
  const Time last = visible.first + visible.per_line * static_cast<std::int64_t>(lines - 1);
  if (last > now || !readers_.empty()) {
    PendingChange change{offset, visible, last, writer, thread, {}};
    if (!free_buffers_.empty()) {
      change.replaced = std::move(free_buffers_.back());
      free_buffers_.pop_back();
    }
    change.replaced.assign(base_ + offset, base_ + offset + bytes.size());
    changes_.push_back(std::move(change));
  }
  std::memcpy(base_ + offset, bytes.data(), bytes.size());
}

template <class MomentOfLine>
void Timeline::undo(const PendingChange& change, Bytes begin, Bytes end, Bytes offset,
                    std::span<std::byte> into, MomentOfLine moment) {
  begin = std::max(begin, change.offset);
  end = std::min(end, change.end());
  for (Bytes at = begin; at < end;) {
    const Bytes line_end = std::min(end, (at / kCacheLine + 1) * kCacheLine);
    const Time visible = change.visible.of(at / kCacheLine - change.offset / kCacheLine);
    if (visible > moment(at / kCacheLine - offset / kCacheLine)) {
      std::memcpy(into.data() + (at - offset), change.replaced.data() + (at - change.offset),
                  line_end - at);
    }
    at = line_end;
  }
}

template <class Visit>
void Timeline::for_each_change(Bytes offset, Bytes length, Visit visit) {
  const Bytes end = offset + length;
  const std::uint64_t first = offset / kBlock;
  const std::uint64_t last = (end - 1) / kBlock;
  if (changes_.size() <= std::max<std::size_t>(kFew, last - first)) {
    looked_at_ += changes_.size();
    for (std::size_t i = changes_.size(); i-- > 0;) visit(changes_[i], offset, end);
    return;
  }
  chain_up();
  for (std::uint64_t block = first; block <= last; ++block) {
    const Bytes from = std::max(offset, block * kBlock);
    const Bytes to = std::min(end, (block + 1) * kBlock);
    std::uint64_t number = chains_[block & (chains_.size() - 1)];
    while (number >= first_touch_) {
      const Touch& touch = touches_[number - first_touch_];
      ++looked_at_;
      if (touch.block == block) visit(changes_[touch.change - first_change_], from, to);
      number = touch.older;
    }
  }
}

// Adds the changes that are in no chain yet to the chains of their blocks.
void Timeline::chain_up() {
  constexpr std::size_t kLeastChains = 64;
  for (; chained_ < first_change_ + changes_.size(); ++chained_) {
    const PendingChange& change = changes_[chained_ - first_change_];
    const std::uint64_t last = (change.end() - 1) / kBlock;
    for (std::uint64_t block = change.offset / kBlock; block <= last; ++block) {
      if (touches_.size() >= chains_.size()) {
        chains_.assign(std::max(kLeastChains, 2 * chains_.size()), 0);
        for (std::size_t i = 0; i < touches_.size(); ++i) chain(touches_[i], first_touch_ + i);
      }
      Touch touch{chained_, block, 0};
      chain(touch, first_touch_ + touches_.size());
      touches_.push_back(touch);
    }
  }
}

void Timeline::chain(Touch& touch, std::uint64_t number) {
  touch.older = std::exchange(chains_[touch.block & (chains_.size() - 1)], number);
}

void Timeline::device_read(Bytes offset, std::span<std::byte> into, LineTimes seen) {
  if (into.empty()) return;
  std::memcpy(into.data(), base_ + offset, into.size());
  if (changes_.empty()) return;
  for_each_change(offset, into.size(), [&](const PendingChange& change, Bytes begin, Bytes end) {
    undo(change, begin, end, offset, into, [&](Bytes line) { return seen.of(line); });
  });
}

void Timeline::cpu_read(Bytes offset, std::span<std::byte> into, Time when,
                        const StoringThread* reader) {
  if (into.empty()) return;
  std::memcpy(into.data(), base_ + offset, into.size());
  if (changes_.empty()) return;
  for_each_change(offset, into.size(), [&](const PendingChange& change, Bytes begin, Bytes end) {
    if (change.writer != Writer::device) {
      const bool others = reader != nullptr && change.thread != nullptr && change.thread != reader;
      if (others && change.offset < end && begin < change.end()) {
        change.thread->seen_until = std::max(change.thread->seen_until, change.last_visible);
      }
      return;
    }
    undo(change, begin, end, offset, into, [when](Bytes) { return when; });
  });
}

// A CPU's stores become visible in the order of their addresses, so the stores that were not made
// are at the end of a change. The newest change is undone first: it replaced what an earlier one of
// the thread had left.
void Timeline::withdraw(const StoringThread& thread, Time now, Time from) {
  bool any = false;
  for (std::size_t i = changes_.size(); i-- > 0;) {
    PendingChange& change = changes_[i];
    if (change.thread != &thread || change.last_visible <= now) continue;
    if (change.last_visible <= from) {
      hasten(change, now);
      continue;
    }
    any = true;
    Bytes begin = change.offset;
    for (Bytes line = 0; begin < change.end() && change.visible.of(line) <= from; ++line) {
      change.last_visible = change.visible.of(line);
      begin = (begin / kCacheLine + 1) * kCacheLine;
    }
    put_back(i, begin);
    change.replaced.resize(begin - change.offset);
    if (!change.replaced.empty()) hasten(change, now);
  }
  if (!any) return;
  leave_chains();
  Ring<PendingChange> kept;
  while (!changes_.empty()) {
    PendingChange change = changes_.take_front();
    if (!change.replaced.empty()) kept.push_back(std::move(change));
  }
  changes_ = std::move(kept);
}

// Makes all lines of the change visible by `now`, in their order.
void Timeline::hasten(PendingChange& change, Time now) {
  if (change.last_visible <= now) return;
  const Time first = std::min(change.visible.first, now);
  const Bytes lines = (change.end() - 1) / kCacheLine - change.offset / kCacheLine;
  change.visible = {first,
                    lines > 0 ? (now - first) / static_cast<std::int64_t>(lines) : Picoseconds{}};
  change.last_visible = now;
}

// Undoes a change from `begin` on: the replaced bytes go to memory, or to the first later change
// that has replaced them in turn.
void Timeline::put_back(std::size_t change, Bytes begin) {
  const PendingChange& undone = changes_[change];
  std::vector<std::pair<Bytes, Bytes>> left{{begin, undone.end()}};
  const auto replaced = [&](Bytes at) { return undone.replaced.data() + (at - undone.offset); };
  for (std::size_t i = change + 1; i < changes_.size(); ++i) {
    PendingChange& later = changes_[i];
    std::vector<std::pair<Bytes, Bytes>> rest;
    for (const auto& [from, to] : left) {
      const Bytes first = std::max(from, later.offset);
      const Bytes last = std::min(to, later.end());
      if (first >= last) {
        rest.emplace_back(from, to);
        continue;
      }
      std::memcpy(later.replaced.data() + (first - later.offset), replaced(first), last - first);
      if (from < first) rest.emplace_back(from, first);
      if (last < to) rest.emplace_back(last, to);
    }
    left = std::move(rest);
  }
  for (const auto& [from, to] : left) std::memcpy(base_ + from, replaced(from), to - from);
}

void Timeline::amend(std::uint64_t change, Bytes offset, std::span<const std::byte> replaced) {
  PendingChange& amended = changes_[change - first_change_];
  std::memcpy(amended.replaced.data() + (offset - amended.offset), replaced.data(),
              replaced.size());
}

// Empties the chains; all changes will be chained anew.
void Timeline::leave_chains() {
  first_touch_ += touches_.size();
  touches_ = {};
  std::fill(chains_.begin(), chains_.end(), 0);
  first_change_ += changes_.size();
  chained_ = first_change_;
}

void Timeline::drop_visible(Time horizon) {
  while (!changes_.empty() && changes_.front().last_visible <= horizon) {
    while (!touches_.empty() && touches_.front().change == first_change_) {
      touches_.pop_front();
      ++first_touch_;
    }
    free_buffers_.push_back(std::move(changes_.front().replaced));
    changes_.pop_front();
    ++first_change_;
  }
  chained_ = std::max(chained_, first_change_);
}

}  // namespace perdura::pmem::sim
