#include "platform/fabric/sim/nic.h"

#include <algorithm>

namespace perdura::fabric::sim {
namespace {

// Translation tables of registrations have their keys as numbers; those of local memory have the
// number of the region, with this bit set.
constexpr std::uint64_t kLocal = std::uint64_t{1} << 32;

}  // namespace

Bytes Nic::page_of(const pmem::sim::SimRegion& region) const {
  const Bytes page = translations->profile().page;
  return page == 0 || region.page() == 0 ? page : region.page();
}

Time Nic::find_pages(Time at, std::uint64_t table, Bytes page, Bytes offset, Bytes length) {
  if (length == 0) return at;
  Time found = at;
  for (Bytes number = offset / page; number <= (offset + length - 1) / page; ++number) {
    found = std::max(found, translations->find(at, {table, number}));
  }
  return found;
}

// Translations of pages are numbered from the start of the registration if it has extents, and from
// the start of the region otherwise. Translations of ranges are known by their place in the
// registration.
Time Nic::translate(Time at, const WorkRequest& request, const Registered& memory, Bytes length,
                    std::span<const RegionPiece> pieces) {
  const std::uint64_t table = request.remote.key.value;
  const Bytes page = page_of(memory.region());
  if (page != 0) {
    const Bytes start = memory.extents != nullptr ? 0 : memory.offset;
    return find_pages(at, table, page, start + request.remote.offset, length);
  }
  if (memory.extents == nullptr) return translations->find(at, {table, 0});
  Time found = at;
  for (const RegionPiece& piece : pieces) {
    const Extent& extent = memory.extents->extents()[piece.extent];
    found = std::max(found, translations->find(at, TranslationId::of_range(table, extent.at)));
  }
  return found;
}

Time Nic::translate(Time at, const LocalPieces& local, Bytes length) {
  Time found = at;
  for (const LocalBuffer& piece : local.all()) {
    const Bytes part = std::min<Bytes>(piece.length, length);
    if (part == 0) continue;
    length -= part;
    const pmem::sim::SimRegion& region = model_of(*piece.region);
    const std::uint64_t table = kLocal + region.number();
    const Bytes page = page_of(region);
    found = std::max(found, page != 0 ? find_pages(at, table, page, piece.offset, part)
                                      : translations->find(at, {table, 0}));
  }
  return found;
}

std::uint64_t Nic::entries_in(const Registered& memory, Bytes at, Bytes length) const {
  if (!translations || length == 0) return 0;
  const Bytes page = page_of(memory.region());
  return page == 0 ? 1 : (at + length - 1) / page - at / page + 1;
}

std::uint64_t Nic::entries_of(const Registered& memory) const {
  if (memory.extents == nullptr) return entries_in(memory, memory.offset, memory.length);
  std::uint64_t sum = 0;
  for (const Extent& extent : memory.extents->extents()) {
    sum += entries_in(memory, extent.at, extent.length);
  }
  return sum;
}

// Must be called before the change. If translations cover ranges, drops those that the change
// touches or merges with the new extent.
void Nic::forget_changed(const ExtentMap& map, const Registered& memory, Bytes at, Bytes length) {
  if (!translations || length == 0) return;
  const Bytes page = page_of(memory.region());
  if (page != 0) {
    translations->forget(map.key.value, at / page, (at + length - 1) / page);
    return;
  }
  for (const Extent& extent : memory.extents->extents()) {
    if (extent.at <= at + length && at <= extent.at + extent.length) {
      translations->forget(TranslationId::of_range(map.key.value, extent.at));
    }
  }
}

std::uint64_t Nic::map(const ExtentMap& map, const Extent& extent) {
  Registered& memory = extents_of(map);
  forget_changed(map, memory, extent.at, extent.length);
  memory.extents->map(extent, memory.region_size);
  if (memory.appends) memory.appends->reported = 0;
  return entries_in(memory, extent.at, extent.length);
}

std::uint64_t Nic::unmap(const ExtentMap& map, Bytes at, Bytes length) {
  Registered& memory = extents_of(map);
  forget_changed(map, memory, at, length);
  memory.extents->unmap(at, length);
  if (memory.appends) memory.appends->reported = 0;
  return entries_in(memory, at, length);
}

}  // namespace perdura::fabric::sim
