#include "platform/fabric/shm/node_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "platform/base/error.h"
#include "platform/fabric/shm/segment.h"
#include "platform/pmem/word_copy.h"

namespace perdura::fabric::shm {

void NodeMemory::add(const std::byte* base, const std::string& path, pmem::Medium medium) {
  const std::scoped_lock lock(mutex_);
  Backing& backing = regions_[base];
  backing.path = path;
  backing.medium = medium;
  ++backing.uses;
}

void NodeMemory::remove(const std::byte* base) {
  const std::scoped_lock lock(mutex_);
  const auto found = regions_.find(base);
  if (found == regions_.end() || --found->second.uses != 0) return;
  for (const std::uint32_t key : found->second.keys) free_entry(key);
  regions_.erase(found);
}

RemoteKey NodeMemory::publish(pmem::Region& region, Bytes offset, Bytes length, Access access) {
  if (offset > region.size() || length > region.size() - offset) {
    throw PlatformError(fmt::format("cannot register bytes {}..{} of region {}, which has {}",
                                    offset, offset + length, region.name(), region.size()));
  }
  const std::scoped_lock lock(mutex_);
  return {publish_locked(backing_of(region), offset, length, access)};
}

RemoteKey NodeMemory::publish(pmem::Region& region, std::span<const Extent> extents,
                              Access access) {
  ExtentTable table = make_extent_table(extents, region.size());
  const std::scoped_lock lock(mutex_);
  const std::uint32_t key = publish_locked(backing_of(region), 0, 0, access, &table);
  extents_[key] = {std::move(table), region.size()};
  return {key};
}

NodeMemory::Extents& NodeMemory::extents_of(RemoteKey key) {
  const auto found = extents_.find(key.value);
  if (found == extents_.end()) {
    throw PlatformError("cannot change the extents of a registration: no such key");
  }
  return found->second;
}

void NodeMemory::map_extent(RemoteKey key, const Extent& extent) {
  const std::scoped_lock lock(mutex_);
  Extents& extents = extents_of(key);
  extents.table.map(extent, extents.region_size);
  publish_locked(key, extents);
}

void NodeMemory::unmap_extents(RemoteKey key, Bytes at, Bytes length) {
  const std::scoped_lock lock(mutex_);
  Extents& extents = extents_of(key);
  extents.table.unmap(at, length);
  publish_locked(key, extents);
}

// An APPEND that still finds no memory asks again.
void NodeMemory::publish_locked(RemoteKey key, const Extents& extents) {
  RegionEntry& entry = segment_->regions[region_entry(key.value)];
  tables_.publish(entry.extents, extents.table);
  entry.appends.asked.store(0, std::memory_order_seq_cst);
}

void NodeMemory::allow_appends(RemoteKey key, Bytes size_word, std::uint32_t doorbell) {
  const std::scoped_lock lock(mutex_);
  check_size_word(size_word, extents_of(key).region_size);
  SharedAppends& appends = segment_->regions[region_entry(key.value)].appends;
  appends.asked.store(0, std::memory_order_relaxed);
  appends.doorbell.store(doorbell, std::memory_order_relaxed);
  appends.size_word.store(size_word + 1, std::memory_order_seq_cst);
}

void NodeMemory::add(const OwnSegment& segment) {
  const std::scoped_lock lock(mutex_);
  endpoints_.push_back(&segment);
}

void NodeMemory::remove(const OwnSegment& segment) {
  const std::scoped_lock lock(mutex_);
  std::erase(endpoints_, &segment);
}

std::vector<NodeMemory::Begun> NodeMemory::begun() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Begun> all;
  for (const OwnSegment* const segment : endpoints_) {
    for (std::uint32_t slot = 0; slot < segment->slots_used(); ++slot) {
      const std::uint64_t life =
          segment->shared().connections[slot].changing.load(std::memory_order_seq_cst);
      if (life != 0) all.push_back({segment, slot, life});
    }
  }
  return all;
}

void NodeMemory::drop_ended(std::vector<Begun>& begun) const {
  const std::scoped_lock lock(mutex_);
  std::erase_if(begun, [this](const Begun& operation) {
    // An operation counts as ended if its endpoint, and with it the connection, is gone.
    if (std::find(endpoints_.begin(), endpoints_.end(), operation.segment) == endpoints_.end()) {
      return true;
    }
    const ConnectionSlot& slot = operation.segment->shared().connections[operation.slot];
    return slot.changing.load(std::memory_order_seq_cst) != operation.life;
  });
}

std::uint32_t NodeMemory::buffer_key(pmem::Region& region) {
  const std::scoped_lock lock(mutex_);
  Backing& backing = backing_of(region);
  if (backing.buffer_key == 0) {
    backing.buffer_key = publish_locked(backing, 0, region.size(), Access::local);
  }
  return backing.buffer_key;
}

void NodeMemory::revoke(RemoteKey key) {
  const std::scoped_lock lock(mutex_);
  for (auto& [base, backing] : regions_) {
    if (std::erase(backing.keys, key.value) != 0) {
      free_entry(key.value);
      return;
    }
  }
}

bool NodeMemory::is_valid(std::uint32_t key) const {
  return key != 0 &&
         segment_->regions[region_entry(key)].key.load(std::memory_order_relaxed) == key;
}

NodeMemory::Backing& NodeMemory::backing_of(pmem::Region& region) {
  const auto found = regions_.find(region.data());
  if (found == regions_.end()) {
    throw PlatformError(fmt::format(
        "region {} was not created by this node and cannot be registered on it", region.name()));
  }
  return found->second;
}

std::uint32_t NodeMemory::publish_locked(Backing& backing, Bytes offset, Bytes length,
                                         Access access, const ExtentTable* extents) {
  if (backing.path.size() + 1 > RegionEntry::kMaxPath) {
    throw PlatformError(fmt::format("the path {} is longer than {} bytes", backing.path,
                                    RegionEntry::kMaxPath - 1));
  }
  std::uint32_t index;
  if (next_entry_ < kMaxRegions) {
    index = next_entry_++;
  } else if (!free_entries_.empty()) {
    // Takes the entry that has been free for longest, so that its old keys stay invalid for as long
    // as possible.
    index = free_entries_.front();
    free_entries_.erase(free_entries_.begin());
  } else {
    throw PlatformError(fmt::format("more than {} registered regions on a node", kMaxRegions));
  }
  constexpr std::uint32_t kReuses = 1U << (32 - kRegionBits);
  reuse_[index] = reuse_[index] % (kReuses - 1) + 1;  // never 0, so no key is 0
  const std::uint32_t key = reuse_[index] << kRegionBits | index;

  RegionEntry& entry = segment_->regions[index];
  try {
    take_memory(&entry, sizeof entry, "the node's table of regions in /dev/shm");
    if (extents != nullptr) tables_.publish(entry.extents, *extents);
  } catch (const PlatformError&) {
    free_entries_.push_back(index);
    throw;
  }
  std::array<std::byte, RegionEntry::kMaxPath> path{};
  std::memcpy(path.data(), backing.path.data(), backing.path.size());
  pmem::copy_to_shared(entry.path.data(), path);
  entry.access.store(static_cast<std::uint32_t>(access), std::memory_order_relaxed);
  entry.medium.store(static_cast<std::uint32_t>(backing.medium), std::memory_order_relaxed);
  entry.offset.store(offset, std::memory_order_relaxed);
  entry.length.store(length, std::memory_order_relaxed);
  // The lock is left as it is: a peer that uses the entry's last key may hold it.
  entry.dirty.count.store(0, std::memory_order_relaxed);
  entry.key.store(key, std::memory_order_release);
  backing.keys.push_back(key);
  return key;
}

void NodeMemory::free_entry(std::uint32_t key) {
  RegionEntry& entry = segment_->regions[region_entry(key)];
  entry.key.store(0, std::memory_order_seq_cst);
  tables_.withdraw(entry.extents);
  entry.appends.size_word.store(0, std::memory_order_seq_cst);
  extents_.erase(key);
  free_entries_.push_back(region_entry(key));
}

}  // namespace perdura::fabric::shm
