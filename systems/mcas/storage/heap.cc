#include "systems/mcas/storage/heap.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "systems/mcas/storage/damage.h"

namespace perdura::systems::mcas {

namespace {

constexpr std::uint64_t kBits = 64;  // per word of a region's bitmap

bool is_used(const std::vector<std::uint64_t>& slots, std::uint64_t slot) {
  return (slots[slot / kBits] >> slot % kBits & 1) != 0;
}

[[noreturn]] void throw_not_free() {
  throw DamagedPool("an object of the heap lies where no free memory is");
}

}  // namespace

Bytes Heap::Geometry::longest_in_region() const {
  return std::min(kLongestInRegion, region_size / kLeastSlots);
}

Bytes Heap::Geometry::slot_size(Bytes length) const {
  if (length > longest_in_region()) return round_up(length, kCacheLine);
  return std::max(kSmallestSlot, std::bit_ceil(length));
}

std::size_t Heap::bucket_of(Bytes slot_size) {
  return static_cast<std::size_t>(std::countr_zero(slot_size) - std::countr_zero(kSmallestSlot));
}

void Heap::add_area(ByteRange area) {
  const RegionNumber end = number_of(area.end());
  if (regions_.size() < end) regions_.resize(end);
  area_bytes_ += area.length;
  free_bytes_ += area.length;
  add_to_areas(area);
  add_range(area);
}

void Heap::add_to_areas(ByteRange area) {
  const auto next = std::find_if(areas_.begin(), areas_.end(),
                                 [&](const ByteRange& one) { return one.offset > area.offset; });
  const auto added = areas_.insert(next, area);
  const auto behind = std::next(added);
  if (behind != areas_.end() && behind->offset == added->end()) {
    added->length += behind->length;
    areas_.erase(behind);
  }
  if (added == areas_.begin() || std::prev(added)->end() != added->offset) return;
  std::prev(added)->length += added->length;
  areas_.erase(added);
}

bool Heap::contains(ByteRange range) const {
  const auto behind =
      std::upper_bound(areas_.begin(), areas_.end(), range.offset,
                       [](Bytes offset, const ByteRange& area) { return offset < area.offset; });
  if (behind == areas_.begin()) return false;
  const ByteRange& area = *std::prev(behind);
  const Bytes before = range.offset - area.offset;
  return before <= area.length && range.length <= area.length - before;
}

bool Heap::is_allocated(ByteRange object) const {
  if (!contains(object)) return false;
  const ByteRange whole{object.offset, geometry_.slot_size(object.length)};
  if (!contains(whole)) return false;
  const RegionNumber number = number_of(object.offset);
  const Bytes within = object.offset - offset_of(number);
  if (in_region(object.length)) {
    const bool divided = regions_[number] && regions_[number]->slot_size == whole.length;
    return divided && within % whole.length == 0 &&
           is_used(regions_[number]->used_slots, within / whole.length);
  }
  if (within % kCacheLine != 0) return false;
  const auto range = free_ranges_.lower_bound(whole.end());
  if (range != free_ranges_.begin() &&
      std::prev(range)->first + std::prev(range)->second > whole.offset) {
    return false;
  }
  return std::none_of(
      regions_.begin() + static_cast<std::ptrdiff_t>(number),
      regions_.begin() + static_cast<std::ptrdiff_t>(number_of(whole.end() - 1)) + 1,
      [](const auto& region) { return region != nullptr; });
}

// --- objects -------------------------------------------------------------------------------------

std::optional<ByteRange> Heap::allocate(Bytes length) {
  const Bytes size = geometry_.slot_size(length);
  if (!in_region(length)) {
    const std::optional<ByteRange> found = best_fit(size);
    if (!found) return std::nullopt;
    take_range(*found);
    return ByteRange{found->offset, length};
  }
  const auto& candidates = with_free_slots_[bucket_of(size)];
  const std::optional<RegionNumber> number =
      candidates.empty() ? new_region(size) : std::optional(*candidates.begin());
  if (!number) return std::nullopt;
  Region& region = *regions_[*number];
  // The region has a free slot, so the scan ends.
  std::uint64_t word = region.perhaps_free / kBits;
  while (region.used_slots[word] == ~std::uint64_t{0}) ++word;
  const std::uint64_t slot =
      word * kBits + static_cast<std::uint64_t>(std::countr_one(region.used_slots[word]));
  region.perhaps_free = slot;
  use_slot(*number, slot);
  return ByteRange{offset_of(*number) + slot * size, length};
}

void Heap::free(ByteRange object) {
  if (in_region(object.length)) {
    const RegionNumber number = number_of(object.offset);
    free_slot(number, (object.offset - offset_of(number)) / regions_[number]->slot_size);
    return;
  }
  const Bytes size = geometry_.slot_size(object.length);
  free_bytes_ += size;
  add_range({object.offset, size});
}

void Heap::take(ByteRange object) {
  if (!contains(object)) throw_not_free();
  const Bytes size = geometry_.slot_size(object.length);
  const RegionNumber number = number_of(object.offset);
  const Bytes within = object.offset - offset_of(number);
  if (!in_region(object.length)) {
    if (within % kCacheLine != 0) throw_not_free();
    return take_range({object.offset, size});
  }
  if (within % size != 0) throw_not_free();
  const std::uint64_t slot = within / size;
  if (!regions_[number]) {
    remove_range({offset_of(number), geometry_.region_size});
    make_region(number, size);
  } else if (regions_[number]->slot_size != size || is_used(regions_[number]->used_slots, slot)) {
    throw_not_free();
  }
  use_slot(number, slot);
}

void Heap::take_range(ByteRange range) {
  remove_range(range);
  free_bytes_ -= range.length;
}

void Heap::take_region(Bytes offset, Bytes slot_size, std::span<const std::uint64_t> used_slots) {
  remove_range({offset, geometry_.region_size});
  const RegionNumber number = number_of(offset);
  Region& region = make_region(number, slot_size);
  for (std::size_t i = 0; i < region.used_slots.size(); ++i) region.used_slots[i] |= used_slots[i];
  for (const std::uint64_t word : used_slots) {
    region.used += static_cast<std::uint64_t>(std::popcount(word));
  }
  free_bytes_ -= region.used * slot_size;
  if (region.used == slots_of(region)) with_free_slots_[bucket_of(slot_size)].erase(number);
}

// --- regions -------------------------------------------------------------------------------------

Heap::Region& Heap::make_region(RegionNumber number, Bytes slot_size) {
  Region& region = *(regions_[number] = std::make_unique<Region>());
  region.slot_size = slot_size;
  const std::uint64_t slots = slots_of(region);
  region.used_slots.resize((slots + kBits - 1) / kBits);
  // The bits after the last slot are never free.
  if (slots % kBits != 0) region.used_slots.back() = ~std::uint64_t{0} << slots % kBits;
  with_free_slots_[bucket_of(slot_size)].insert(number);
  return region;
}

std::optional<Heap::RegionNumber> Heap::new_region(Bytes slot_size) {
  const Bytes size = geometry_.region_size;
  for (auto range = ranges_by_size_.lower_bound({size, 0}); range != ranges_by_size_.end();
       ++range) {
    const auto [length, offset] = *range;
    const Bytes aligned = geometry_.first + round_up(offset - geometry_.first, size);
    if (aligned + size > offset + length) continue;
    const RegionNumber number = number_of(aligned);
    remove_range({aligned, size});
    make_region(number, slot_size);
    return number;
  }
  return std::nullopt;
}

void Heap::use_slot(RegionNumber number, std::uint64_t slot) {
  Region& region = *regions_[number];
  region.used_slots[slot / kBits] |= std::uint64_t{1} << slot % kBits;
  if (slot == region.perhaps_free) ++region.perhaps_free;
  free_bytes_ -= region.slot_size;
  if (++region.used == slots_of(region)) {
    with_free_slots_[bucket_of(region.slot_size)].erase(number);
  }
}

void Heap::free_slot(RegionNumber number, std::uint64_t slot) {
  Region& region = *regions_[number];
  auto& with_free_slots = with_free_slots_[bucket_of(region.slot_size)];
  region.used_slots[slot / kBits] &= ~(std::uint64_t{1} << slot % kBits);
  region.perhaps_free = std::min(region.perhaps_free, slot);
  free_bytes_ += region.slot_size;
  if (--region.used > 0) {
    with_free_slots.insert(number);
    return;
  }
  with_free_slots.erase(number);
  regions_[number].reset();
  add_range({offset_of(number), geometry_.region_size});
  ++returned_;
}

std::uint64_t Heap::regions() const {
  return static_cast<std::uint64_t>(std::count_if(regions_.begin(), regions_.end(),
                                                  [](const auto& one) { return one != nullptr; }));
}

bool Heap::same_regions(const Heap& other) const {
  return std::equal(regions_.begin(), regions_.end(), other.regions_.begin(), other.regions_.end(),
                    [](const auto& a, const auto& b) { return a && b ? *a == *b : !a && !b; });
}

// --- free ranges ---------------------------------------------------------------------------------

// Joins the range with those that it touches.
void Heap::add_range(ByteRange range) {
  auto next = free_ranges_.lower_bound(range.offset);
  if (next != free_ranges_.end() && next->first == range.end()) {
    range.length += next->second;
    ranges_by_size_.erase({next->second, next->first});
    next = free_ranges_.erase(next);
  }
  if (next != free_ranges_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == range.offset) {
      range = {before->first, before->second + range.length};
      ranges_by_size_.erase({before->second, before->first});
      free_ranges_.erase(before);
    }
  }
  free_ranges_.emplace(range.offset, range.length);
  ranges_by_size_.emplace(range.length, range.offset);
}

void Heap::remove_range(ByteRange part) {
  const auto behind = free_ranges_.upper_bound(part.offset);
  const ByteRange range = behind == free_ranges_.begin()
                              ? ByteRange{}
                              : ByteRange{std::prev(behind)->first, std::prev(behind)->second};
  if (part.offset < range.offset || part.end() > range.end() || part.end() < part.offset) {
    throw_not_free();
  }
  const auto found = std::prev(behind);
  ranges_by_size_.erase({range.length, range.offset});
  free_ranges_.erase(found);
  if (part.offset > range.offset) {
    free_ranges_.emplace(range.offset, part.offset - range.offset);
    ranges_by_size_.emplace(part.offset - range.offset, range.offset);
  }
  if (part.end() < range.end()) {
    free_ranges_.emplace(part.end(), range.end() - part.end());
    ranges_by_size_.emplace(range.end() - part.end(), part.end());
  }
}

std::optional<ByteRange> Heap::best_fit(Bytes length) const {
  const auto found = ranges_by_size_.lower_bound({length, 0});
  if (found == ranges_by_size_.end()) return std::nullopt;
  return ByteRange{found->second, length};
}

// --- audit ---------------------------------------------------------------------------------------

std::string Heap::audit(std::vector<ByteRange> objects) const {
  std::sort(objects.begin(), objects.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.offset < b.offset; });
  Bytes end = 0;
  Bytes used = 0;
  for (const ByteRange& object : objects) {
    if (object.offset < end) return "two objects of the heap overlap";
    end = object.offset + geometry_.slot_size(object.length);
    used += end - object.offset;
    if (in_region(object.length)) {
      const RegionNumber number = number_of(object.offset);
      const bool known = number < regions_.size() && regions_[number] &&
                         is_used(regions_[number]->used_slots,
                                 (object.offset - offset_of(number)) / regions_[number]->slot_size);
      if (!known) return "the heap counts the memory of an object as free";
    } else {
      const auto range = free_ranges_.lower_bound(end);
      if (range != free_ranges_.begin() &&
          std::prev(range)->first + std::prev(range)->second > object.offset) {
        return "the heap counts the memory of an object as free";
      }
    }
  }
  if (used != used_bytes()) return "memory of the heap is neither free nor in use";
  return {};
}

}  // namespace perdura::systems::mcas
