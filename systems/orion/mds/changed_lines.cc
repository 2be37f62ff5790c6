#include "systems/orion/mds/changed_lines.h"

#include <mutex>

namespace perdura::systems::orion {

void ChangedLines::flushed(Bytes offset, Bytes length) {
  if (length == 0) return;
  const std::lock_guard guard(lock_);
  for (Bytes line = offset / kCacheLine * kCacheLine; line < offset + length; line += kCacheLine) {
    flushed_.push_back(line);
  }
}

// Takes what other threads have flushed, too: a line may become durable before its fence.
void ChangedLines::drained(const pmem::Region& region) {
  const std::lock_guard guard(lock_);
  if (flushed_.empty()) return;
  ++changes_;
  if (waiting_.empty()) waiting_.emplace_back();
  for (const Bytes line : flushed_) {
    if (waiting_.back().lines.size() >= most_ && !waiting_.back().lines.contains(line)) {
      // The rest of this fence comes later, and so does the fence.
      waiting_.back().until = changes_ - 1;
      waiting_.emplace_back();
    }
    region.read(line, waiting_.back().lines[line]);
  }
  waiting_.back().until = changes_;
  flushed_.clear();
}

std::uint64_t ChangedLines::changes() {
  const std::lock_guard guard(lock_);
  return changes_;
}

ChangedLines::Batch ChangedLines::take() {
  Lines taken;
  {
    const std::lock_guard guard(lock_);
    taken = std::move(waiting_.front());
    waiting_.pop_front();
  }
  Batch batch{.until = taken.until};
  batch.contents.reserve(taken.lines.size() * kCacheLine);
  for (const auto& [offset, line] : taken.lines) {
    const bool follows =
        !batch.ranges.empty() && batch.ranges.back().offset + batch.ranges.back().length == offset;
    if (!follows) batch.ranges.push_back({offset, 0});
    batch.ranges.back().length += kCacheLine;
    batch.contents.insert(batch.contents.end(), line.begin(), line.end());
  }
  return batch;
}

}  // namespace perdura::systems::orion
