#include "systems/mcas/storage/region_allocator.h"

#include <algorithm>
#include <vector>

namespace perdura::systems::mcas {

void RegionAllocator::format() {
  memory_.store_durably(offset_, 0);  // before there is anything that the log could undo
  const ByteRange all{extent_.first, extent_.size()};
  write_descriptor(0, {all.offset, all.length, kFree, 0});
  for (std::uint64_t i = 1; i < extent_.granules; ++i) write_descriptor(i, {});
  memory_.drain();
  count();
}

bool RegionAllocator::recover() {
  // A process that died leaves what is visible, not what is durable (docs/restart.md).
  memory_.persist({offset_, size(extent_.granules)});
  const std::uint64_t entries = memory_.region().load(offset_);
  for (std::uint64_t i = 0; i < entries; ++i) {
    const auto entry = memory_.region().read_object<UndoEntry>(undo_offset(i));
    write_descriptor(entry.index, entry.before);
  }
  if (entries > 0) {
    memory_.drain();
    memory_.store_durably(offset_, 0);
  }
  count();
  return entries > 0;
}

std::optional<ByteRange> RegionAllocator::allocate(Bytes length, std::uint64_t pool) {
  const Bytes wanted = round_up(length, extent_.granule_size);
  if (wanted > free_bytes_of(pool)) return std::nullopt;
  std::optional<DescriptorChange> found;
  for (std::uint64_t i = 0; i < extent_.granules; ++i) {
    const RegionDescriptor one = descriptor(i);
    const bool fits = one.identifier == kFree && one.length >= wanted;
    if (fits && (!found || one.offset < found->after.offset)) found = DescriptorChange{i, one};
  }
  if (!found) return std::nullopt;
  RegionDescriptor& taken = found->after;
  const Bytes rest = taken.length - wanted;
  taken.length = wanted;
  taken.identifier = pool;
  if (rest == 0) {
    change(std::array{*found});
  } else {
    const RegionDescriptor free{taken.offset + wanted, rest, kFree, 0};
    change(std::array{*found, DescriptorChange{unused_descriptor(), free}});
  }
  free_bytes_ -= wanted;
  used_[pool] += wanted;
  return taken.range();
}

void RegionAllocator::release(ByteRange region) {
  std::optional<DescriptorChange> own;
  std::optional<DescriptorChange> before;
  std::optional<DescriptorChange> behind;
  for (std::uint64_t i = 0; i < extent_.granules; ++i) {
    const RegionDescriptor one = descriptor(i);
    if (one.length == 0) continue;
    if (one.range() == region) own = DescriptorChange{i, one};
    if (one.identifier != kFree) continue;
    if (one.range().end() == region.offset) before = DescriptorChange{i, one};
    if (one.offset == region.end()) behind = DescriptorChange{i, one};
  }
  const std::uint64_t pool = own.value().after.identifier;
  DescriptorChange joined = before ? *before : *own;
  joined.after.identifier = kFree;
  joined.after.length = region.end() - joined.after.offset;
  if (behind) joined.after.length += behind->after.length;
  std::vector<DescriptorChange> changes{joined};
  if (before) changes.push_back({own->index, {}});
  if (behind) changes.push_back({behind->index, {}});
  change(changes);
  free_bytes_ += region.length;
  used_[pool] -= region.length;
}

void RegionAllocator::set_limit(std::uint64_t pool, Bytes limit) {
  limits_[pool] = round_up(limit, extent_.granule_size);
}

Bytes RegionAllocator::capacity_of(std::uint64_t pool) const {
  const auto limit = limits_.find(pool);
  return limit == limits_.end() ? capacity() : std::min(capacity(), limit->second);
}

Bytes RegionAllocator::used_by(std::uint64_t pool) const {
  const auto used = used_.find(pool);
  return used == used_.end() ? 0 : used->second;
}

Bytes RegionAllocator::free_bytes_of(std::uint64_t pool) const {
  const Bytes has = used_by(pool);
  return std::min(free_bytes_, capacity_of(pool) - std::min(capacity_of(pool), has));
}

std::vector<ByteRange> RegionAllocator::regions_of(std::uint64_t pool) const {
  std::vector<ByteRange> ranges;
  for_each([&](const RegionDescriptor& one) {
    if (one.identifier == pool) ranges.push_back(one.range());
  });
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.offset < b.offset; });
  return ranges;
}

void RegionAllocator::change(std::span<const DescriptorChange> changes) {
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const UndoEntry entry{changes[i].index, {}, descriptor(changes[i].index)};
    memory_.region().write_object(undo_offset(i), entry);
    memory_.flush({undo_offset(i), sizeof entry});
  }
  memory_.drain();
  memory_.store_durably(offset_, changes.size());
  for (const DescriptorChange& one : changes) write_descriptor(one.index, one.after);
  memory_.drain();
  memory_.store_durably(offset_, 0);
}

void RegionAllocator::write_descriptor(std::uint64_t index, const RegionDescriptor& descriptor) {
  memory_.region().write_object(descriptor_offset(index), descriptor);
  memory_.flush({descriptor_offset(index), sizeof descriptor});
}

// There is an unused descriptor: a region has at least one granule, and there are as many
// descriptors as granules.
std::uint64_t RegionAllocator::unused_descriptor() const {
  std::uint64_t index = 0;
  while (descriptor(index).length > 0) ++index;
  return index;
}

void RegionAllocator::count() {
  free_bytes_ = 0;
  used_.clear();
  for_each([this](const RegionDescriptor& one) {
    (one.identifier == kFree ? free_bytes_ : used_[one.identifier]) += one.length;
  });
}

std::string RegionAllocator::audit() const {
  std::vector<ByteRange> ranges;
  for_each([&](const RegionDescriptor& one) { ranges.push_back(one.range()); });
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.offset < b.offset; });
  Bytes next = extent_.first;
  for (const ByteRange& range : ranges) {
    if (range.offset < next) return "two regions of the shard overlap";
    if (range.offset > next) return "memory of the shard belongs to no region";
    next = range.end();
  }
  if (next != extent_.first + extent_.size()) return "memory of the shard belongs to no region";
  return {};
}

}  // namespace perdura::systems::mcas
