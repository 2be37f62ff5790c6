#include "bench/memory/sync_points.h"

#include <algorithm>

#include "platform/runtime/work.h"

namespace perdura::bench {

using services::MemoryRange;
using services::MemoryReplica;

Bytes counter_of(const harness::Point& point) {
  return round_up(point.settings.number("region_size"), kCacheLine);
}

Bytes region_size_of(const harness::Point& point) { return counter_of(point) + kCacheLine; }

std::uint64_t counted_in(MemoryReplica& replica, const harness::Point& point) {
  std::uint64_t count = 0;
  replica.read(counter_of(point), std::as_writable_bytes(std::span(&count, 1)));
  return count;
}

std::uint64_t contents_of(MemoryReplica& replica, Bytes size) {
  constexpr Bytes kPiece = 1 * MiB;
  std::vector<std::byte> piece(kPiece);
  std::uint32_t sum = 0;
  for (Bytes done = 0; done < size; done += kPiece) {
    const auto part = std::span(piece).first(std::min(kPiece, size - done));
    replica.read(done, part);
    sum = crc32(sum, part);
  }
  return sum;
}

SyncPoints::SyncPoints(const harness::Point& point, std::uint64_t threads, std::uint64_t index,
                       std::uint64_t stream)
    : random_(point.seed, stream),
      ranges_(point.settings.number("ranges")),
      sync_size_(point.settings.number("sync_size")),
      alignment_(point.settings.number("alignment")),
      stored_(sync_size_) {
  const Bytes size = point.settings.number("region_size") / threads;
  begin_ = index * size / alignment_ * alignment_;
  places_ = (size - std::min(size, sync_size_)) / alignment_ + 1;
  if (begin_ + (places_ - 1) * alignment_ + sync_size_ > (index + 1) * size) --places_;
}

std::span<const MemoryRange> SyncPoints::store(pmem::Region& region) {
  for (MemoryRange& range : ranges_) {
    range = {begin_ + random_.uniform_below(places_) * alignment_, sync_size_};
    std::uint64_t word = random_();
    for (std::byte& byte : stored_) {
      byte = static_cast<std::byte>(word & 0xff);
      word = word >> 8 | word << 56;
    }
    region.write(range.offset, stored_);
  }
  return ranges_;
}

}  // namespace perdura::bench
