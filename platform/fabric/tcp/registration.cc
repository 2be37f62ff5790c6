#include "platform/fabric/tcp/registration.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "platform/base/error.h"

namespace perdura::fabric::tcp {

RemoteKey Registrations::add(std::shared_ptr<Registration> memory) {
  // The factor is odd, so no two numbers have the same key; and a key that is slightly wrong is
  // invalid.
  constexpr std::uint32_t kFactor = 0x9E3779B1;
  const RemoteKey key{++made_ * kFactor};
  by_key_[key.value] = std::move(memory);
  return key;
}

MemoryRegion Registrations::add(pmem::Region& region, Bytes offset, Bytes length, Access access) {
  if (offset > region.size() || length > region.size() - offset) {
    throw PlatformError(fmt::format("cannot register bytes {}..{} of region {}, which has {}",
                                    offset, offset + length, region.name(), region.size()));
  }
  const RemoteKey key = add(std::make_shared<Registration>(region, offset, length, access));
  return {&region, offset, length, key, access};
}

ExtentMap Registrations::add(pmem::Region& region, ExtentTable extents, Access access) {
  auto memory = std::make_shared<Registration>(region, 0, 0, access);
  memory->extents = std::move(extents);
  return {&region, add(std::move(memory)), access};
}

// An answer to a READ may still be in line to be sent, and an APPEND may wait for memory. Neither
// finds any from now on.
void Registrations::remove(RemoteKey key) {
  const auto found = by_key_.find(key.value);
  if (found == by_key_.end()) return;
  Registration& memory = *found->second;
  if (memory.extents) memory.extents->unmap(0, std::numeric_limits<Bytes>::max());
  note_change(memory);
  by_key_.erase(found);
}

Registration& Registrations::extents_of(const ExtentMap& map) {
  const auto found = by_key_.find(map.key.value);
  if (found == by_key_.end() || !found->second->extents) {
    throw PlatformError("cannot change the extents of a registration: no such key");
  }
  return *found->second;
}

void Registrations::note_change(Registration& memory) {
  ++memory.changes;
  if (memory.appends) memory.appends->reported = 0;
}

void Registrations::map(const ExtentMap& map, const Extent& extent) {
  Registration& memory = extents_of(map);
  memory.extents->map(extent, memory.view.size());
  note_change(memory);
}

void Registrations::unmap(const ExtentMap& map, Bytes at, Bytes length) {
  Registration& memory = extents_of(map);
  memory.extents->unmap(at, length);
  note_change(memory);
}

void Registrations::allow_appends(const ExtentMap& map, Bytes size_word, RangeFaults& faults) {
  Registration& memory = extents_of(map);
  check_size_word(size_word, memory.view.size());
  memory.appends = Registration::Appends{.size_word = size_word, .faults = &faults};
}

std::shared_ptr<Registration> Registrations::find(RemoteAddress address, Bytes length,
                                                  Access needed) const {
  const auto found = by_key_.find(address.key.value);
  if (found == by_key_.end()) return nullptr;
  const Registration& memory = *found->second;
  if (!allows(memory.access, needed) || memory.mapping.expired()) return nullptr;
  const bool in_range = address.offset <= memory.length && length <= memory.length - address.offset;
  return in_range || memory.extents ? found->second : nullptr;
}

}  // namespace perdura::fabric::tcp
