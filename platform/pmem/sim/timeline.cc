#include "platform/pmem/sim/timeline.h"

#include <algorithm>
#include <cstring>

namespace perdura::pmem::sim {

void Timeline::change(Time now, Bytes offset, std::span<const std::byte> bytes, Writer writer,
                      LineTimes visible) {
  if (bytes.empty()) return;
  forget_before(now);
  const Bytes lines = (offset + bytes.size() - 1) / kCacheLine - offset / kCacheLine + 1;
  const Time last = visible.first + visible.per_line * static_cast<std::int64_t>(lines - 1);
  if (last > now || !readers_.empty()) {
    Change change{offset, visible, last, writer, {}};
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
void Timeline::undo(const Change& change, Bytes offset, std::span<std::byte> into,
                    MomentOfLine moment) {
  const Bytes begin = std::max(offset, change.offset);
  const Bytes end = std::min(offset + into.size(), change.offset + change.replaced.size());
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

void Timeline::device_read(Bytes offset, std::span<std::byte> into, LineTimes seen) const {
  if (into.empty()) return;
  std::memcpy(into.data(), base_ + offset, into.size());
  for (std::size_t i = changes_.size(); i-- > 0;) {
    undo(changes_[i], offset, into, [&](Bytes line) { return seen.of(line); });
  }
}

void Timeline::cpu_read(Bytes offset, std::span<std::byte> into, Time when) const {
  if (into.empty()) return;
  std::memcpy(into.data(), base_ + offset, into.size());
  for (std::size_t i = changes_.size(); i-- > 0;) {
    if (changes_[i].writer == Writer::device) {
      undo(changes_[i], offset, into, [when](Bytes) { return when; });
    }
  }
}

void Timeline::end_device_read(Time from) {
  readers_.erase(std::find(readers_.begin(), readers_.end(), from));
}

void Timeline::forget_before(Time now) {
  Time horizon = now;
  for (const Time reader : readers_) horizon = std::min(horizon, reader);
  while (!changes_.empty() && changes_.front().last_visible <= horizon) {
    free_buffers_.push_back(std::move(changes_.front().replaced));
    changes_.pop_front();
  }
}

}  // namespace perdura::pmem::sim
