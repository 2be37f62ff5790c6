#include "platform/pmem/sim/disk.h"

#include <algorithm>

namespace perdura::pmem::sim {

Time Disk::transfer(Time now, Time at, Bytes bytes) {
  const Picoseconds duration = perdura::sim::transfer_time(bytes, profile_.bandwidth);
  return pipe_.take(now, at, duration) + duration;
}

void CachedFile::changed(Bytes offset, Bytes length) {
  if (length == 0) return;
  const Bytes last = (offset + length - 1) / kPageOfCache;
  for (Bytes page = offset / kPageOfCache; page <= last; ++page) changed_.insert(page);
}

Time CachedFile::fetch(Time now, Time at, Bytes offset, Bytes length) {
  if (length == 0) return at;
  const Bytes last = (offset + length - 1) / kPageOfCache;
  Bytes absent = 0;
  for (Bytes page = offset / kPageOfCache; page <= last; ++page) {
    if (cached_[page]) continue;
    cached_[page] = true;
    ++absent;
  }
  return absent == 0 ? at : disk_.transfer(now, at, absent * kPageOfCache);
}

void CachedFile::write_back(Time now, Time at, Bytes offset, Bytes length) {
  if (length == 0) return;
  const auto first = changed_.lower_bound(offset / kPageOfCache);
  const auto end = changed_.upper_bound((offset + length - 1) / kPageOfCache);
  const auto pages = static_cast<Bytes>(std::distance(first, end));
  if (pages == 0) return;
  changed_.erase(first, end);
  written_ = std::max(written_, disk_.transfer(now, at, pages * kPageOfCache));
}

Time CachedFile::written(Time at) const { return std::max(at, written_) + disk_.profile().sync; }

}  // namespace perdura::pmem::sim
