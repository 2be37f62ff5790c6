#include "systems/mcas/storage/region_allocator.h"

#include <algorithm>
#include <vector>

namespace perdura::systems::mcas {

void RegionAllocator::format() {
  memory_.store_durably(offset_, 0);  // before there is anything that the log could undo
  const Place all{extent_.first, extent_.size()};
  write_descriptor(0, {all.offset, all.length, kFree, 0});
  for (std::uint64_t i = 1; i < extent_.granules; ++i) write_descriptor(i, {});
  memory_.drain();
  count_free();
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
  count_free();
  return entries > 0;
}

std::optional<Place> RegionAllocator::allocate(Bytes length, std::uint64_t pool) {
  const Bytes wanted = round_up(length, extent_.granule_size);
  std::optional<Change> found;
  for (std::uint64_t i = 0; i < extent_.granules; ++i) {
    const RegionDescriptor one = descriptor(i);
    const bool fits = one.identifier == kFree && one.length >= wanted;
    if (fits && (!found || one.offset < found->after.offset)) found = Change{i, one};
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
    change(std::array{*found, Change{unused_descriptor(), free}});
  }
  free_bytes_ -= wanted;
  return taken.place();
}

void RegionAllocator::change(std::span<const Change> changes) {
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const UndoEntry entry{changes[i].index, {}, descriptor(changes[i].index)};
    memory_.region().write_object(undo_offset(i), entry);
    memory_.flush({undo_offset(i), sizeof entry});
  }
  memory_.drain();
  memory_.store_durably(offset_, changes.size());
  for (const Change& one : changes) write_descriptor(one.index, one.after);
  memory_.drain();
  memory_.store_durably(offset_, 0);
}

void RegionAllocator::write_descriptor(std::uint64_t index, const RegionDescriptor& descriptor) {
  memory_.region().write_object(descriptor_offset(index), descriptor);
  memory_.flush({descriptor_offset(index), sizeof descriptor});
}

// There is one: a region has at least one granule, and there are as many descriptors as granules.
std::uint64_t RegionAllocator::unused_descriptor() const {
  std::uint64_t index = 0;
  while (descriptor(index).length > 0) ++index;
  return index;
}

void RegionAllocator::count_free() {
  free_bytes_ = 0;
  for_each([this](const RegionDescriptor& one) {
    if (one.identifier == kFree) free_bytes_ += one.length;
  });
}

std::string RegionAllocator::audit() const {
  std::vector<Place> places;
  for_each([&](const RegionDescriptor& one) { places.push_back(one.place()); });
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.offset < b.offset; });
  Bytes next = extent_.first;
  for (const Place& place : places) {
    if (place.offset < next) return "two regions of the shard overlap";
    if (place.offset > next) return "memory of the shard belongs to no region";
    next = place.end();
  }
  if (next != extent_.first + extent_.size()) return "memory of the shard belongs to no region";
  return {};
}

}  // namespace perdura::systems::mcas
