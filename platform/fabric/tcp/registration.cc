#include "platform/fabric/tcp/registration.h"

#include <fmt/format.h>

#include "platform/base/error.h"

namespace perdura::fabric::tcp {

MemoryRegion Registrations::add(pmem::Region& region, Bytes offset, Bytes length, Access access) {
  if (offset > region.size() || length > region.size() - offset) {
    throw PlatformError(fmt::format("cannot register bytes {}..{} of region {}, which has {}",
                                    offset, offset + length, region.name(), region.size()));
  }
  // The factor is odd, so no two numbers have the same key; and a key that is slightly wrong is
  // invalid.
  constexpr std::uint32_t kFactor = 0x9E3779B1;
  const RemoteKey key{++made_ * kFactor};
  by_key_[key.value] = std::make_shared<Registration>(region, offset, length, access);
  return {&region, offset, length, key, access};
}

std::shared_ptr<Registration> Registrations::find(RemoteAddress address, Bytes length,
                                                  Access needed) const {
  const auto found = by_key_.find(address.key.value);
  if (found == by_key_.end()) return nullptr;
  const Registration& memory = *found->second;
  if (!allows(memory.access, needed) || address.offset > memory.length ||
      length > memory.length - address.offset || memory.mapping.expired()) {
    return nullptr;
  }
  return found->second;
}

}  // namespace perdura::fabric::tcp
