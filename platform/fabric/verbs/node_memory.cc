#include "platform/fabric/verbs/node_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "platform/base/error.h"

namespace perdura::fabric::verbs {
namespace {

// Multiplication spreads the keys, so that a corrupted key is hardly ever valid.
constexpr std::uint32_t key_number(std::uint32_t n) { return n * 0x9E3779B1U; }

unsigned device_rights(Access access) {
  unsigned flags = 0;
  if (allows(access, Access::remote_read)) flags |= IBV_ACCESS_REMOTE_READ;
  if (allows(access, Access::remote_write)) flags |= IBV_ACCESS_REMOTE_WRITE;
  if (allows(access, Access::remote_atomic)) flags |= IBV_ACCESS_REMOTE_ATOMIC;
  return flags;
}

}  // namespace

void put_range(const std::optional<RemoteRange>& range, Message& message) {
  message.data.clear();
  if (!range) return;
  message.data.resize(sizeof(RemoteRange));
  std::memcpy(message.data.data(), &*range, sizeof(RemoteRange));
}

std::optional<RemoteRange> range_in(const Message& message) {
  if (message.data.size() != sizeof(RemoteRange)) return std::nullopt;
  RemoteRange range;
  std::memcpy(&range, message.data.data(), sizeof(RemoteRange));
  return range;
}

void NodeMemory::add(std::byte* base, Bytes size, pmem::Medium medium, const std::string& path) {
  const std::scoped_lock lock(mutex_);
  Backing& backing = regions_[base];
  backing.size = size;
  backing.medium = medium;
  backing.path = path;
  ++backing.uses;
}

void NodeMemory::remove(const std::byte* base) {
  const std::scoped_lock lock(mutex_);
  const auto found = regions_.find(base);
  if (found == regions_.end() || --found->second.uses != 0) return;
  for (const Registered& registered : found->second.registered) keys_.erase(registered.key);
  regions_.erase(found);
  version_.fetch_add(1, std::memory_order_acq_rel);
}

NodeMemory::Backing& NodeMemory::backing_of(pmem::Region& region) {
  const auto found = regions_.find(region.data());
  if (found == regions_.end()) {
    throw PlatformError(fmt::format(
        "region {} was not created by this node and cannot be registered on it", region.name()));
  }
  return found->second;
}

NodeMemory::Registered NodeMemory::enlist(pmem::Region& region, const Backing& backing,
                                          Bytes offset, Bytes length, Access access) const {
  Registered registered{0, offset, length, access, false, nullptr};
  if (length == 0) return registered;
  std::byte* const base = region.data() + offset;
  unsigned flags = device_rights(access);
#ifdef PERDURA_VERBS_FLUSH
  if (allows(access, Access::remote_flush) && device_->capabilities().flush) {
    flags |= IBV_ACCESS_FLUSH_GLOBAL;
    if (backing.medium == pmem::Medium::pm && flush_persistence_) {
      flags |= IBV_ACCESS_FLUSH_PERSISTENT;
      registered.flush_persistence = true;
    }
  }
#endif
  registered.memory = device_->register_memory(base, length, flags, region.name(), backing.path);
  return registered;
}

void NodeMemory::try_flush_persistence([[maybe_unused]] pmem::Region& region) {
#ifdef PERDURA_VERBS_FLUSH
  flush_persistence_ =
      device_->capabilities().flush_persistence &&
      device_->try_register(region.data(), region.size(),
                            IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT) != nullptr;
#endif
}

RemoteKey NodeMemory::publish(pmem::Region& region, Bytes offset, Bytes length, Access access) {
  if (offset > region.size() || length > region.size() - offset) {
    throw PlatformError(fmt::format("cannot register bytes {}..{} of region {}, which has {}",
                                    offset, offset + length, region.name(), region.size()));
  }
  const std::scoped_lock lock(mutex_);
  Backing& backing = backing_of(region);
  Registered registered = enlist(region, backing, offset, length, access);
  registered.key = key_number(++published_);
  keys_[registered.key] = region.data();
  backing.registered.push_back(std::move(registered));
  return {backing.registered.back().key};
}

void NodeMemory::revoke(RemoteKey key) {
  const std::scoped_lock lock(mutex_);
  const auto found = keys_.find(key.value);
  if (found == keys_.end()) return;
  std::erase_if(regions_[found->second].registered,
                [key](const Registered& registered) { return registered.key == key.value; });
  keys_.erase(found);
  version_.fetch_add(1, std::memory_order_acq_rel);
}

std::optional<RemoteRange> NodeMemory::find(std::uint32_t key) const {
  const std::scoped_lock lock(mutex_);
  const auto found = keys_.find(key);
  if (found == keys_.end()) return std::nullopt;
  const auto& [base, backing] = *regions_.find(found->second);
  const auto registered =
      std::find_if(backing.registered.begin(), backing.registered.end(),
                   [key](const Registered& candidate) { return candidate.key == key; });
  RemoteRange range;
  range.address = reinterpret_cast<std::uint64_t>(base) + registered->offset;
  range.length = registered->length;
  range.region_offset = registered->offset;
  range.device_key = registered->memory == nullptr ? 0 : registered->memory->rkey;
  range.access = registered->access;
  range.medium = backing.medium;
  range.flush_persistence = registered->flush_persistence;
  return range;
}

LocalKey NodeMemory::local_key(pmem::Region& region, Bytes offset, std::uint32_t length) {
  const std::scoped_lock lock(mutex_);
  Backing& backing = backing_of(region);
  const auto key_of = [&](const Registered& registered) {
    const std::byte* const begin = region.data() + registered.offset;
    return LocalKey{begin, begin + registered.length, registered.memory->lkey};
  };
  for (const Registered& registered : backing.registered) {
    if (registered.memory == nullptr) continue;
    const LocalKey key = key_of(registered);
    if (key.holds(region.data() + offset, length)) return key;
  }
  backing.registered.push_back(enlist(region, backing, 0, region.size(), Access::local));
  return key_of(backing.registered.back());
}

}  // namespace perdura::fabric::verbs
