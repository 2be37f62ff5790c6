// Memory that peers may access through one endpoint.
#pragma once

#include <map>
#include <memory>

#include "platform/fabric/fabric.h"

namespace perdura::fabric::tcp {

struct Registration {
  Registration(pmem::Region& region, Bytes from, Bytes size, Access granted)
      : view(region.name(), region.medium(), region.data(), region.size(), nullptr, nullptr),
        mapping(region.mapping()),
        offset(from),
        length(size),
        access(granted) {}

  // The region's memory, which must not be accessed unless `mapping` can be locked: the region may
  // have been destroyed.
  pmem::Region view;
  std::weak_ptr<void> mapping;
  Bytes offset;
  Bytes length;
  Access access;
};

class Registrations {
 public:
  // Throws PlatformError if the range is not in the region.
  MemoryRegion add(pmem::Region& region, Bytes offset, Bytes length, Access access);
  void remove(RemoteKey key) { by_key_.erase(key.value); }
  // Returns null if the access is to be refused.
  std::shared_ptr<Registration> find(RemoteAddress address, Bytes length, Access needed) const;

 private:
  std::map<std::uint32_t, std::shared_ptr<Registration>> by_key_;
  std::uint32_t made_ = 0;
};

}  // namespace perdura::fabric::tcp
