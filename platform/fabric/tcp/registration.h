// Memory that peers may access through one endpoint.
//
// An access through a registration of extents takes place in a single step of the endpoint's
// thread: a WRITE or an APPEND when all of its data has arrived, a READ when its answer is next to
// be sent. A change of the extents is a step, too, so it falls between two accesses and waits for
// none, however slow or silent peers are. The price is memory for a copy: of a payload that is
// longer than the part that is stored at once, until its end has arrived, and of an answer, while
// it is sent.
//
// A registration belongs to its endpoint. Two endpoints must not let peers append by the same word,
// since neither knows what the other one's thread is about to place.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>

#include "platform/fabric/extents.h"
#include "platform/fabric/fabric.h"

namespace perdura::fabric::tcp {

struct Registration {
  Registration(pmem::Region& region, Bytes from, Bytes size, Access granted)
      : view(region.name(), region.medium(), region.data(), region.size(), nullptr, nullptr),
        mapping(region.mapping()),
        offset(from),
        length(size),
        access(granted) {}

  // For a registration to which peers may append.
  struct Appends {
    Bytes size_word = 0;  // the place in the region of the word with the size
    RangeFaults* faults = nullptr;
    Bytes reported = 0;  // range faults up to here are known; 0 after each change of the extents
  };

  // The region's memory, which must not be accessed unless `mapping` can be locked: the region may
  // have been destroyed.
  pmem::Region view;
  std::weak_ptr<void> mapping;
  Bytes offset;
  Bytes length;
  Access access;
  std::optional<ExtentTable> extents{};  // has a value for a registration of extents
  std::optional<Appends> appends{};      // has a value if peers may append
  std::uint64_t changes = 0;             // how often the extents have changed
};

class Registrations {
 public:
  // Throws PlatformError if the range is not in the region.
  MemoryRegion add(pmem::Region& region, Bytes offset, Bytes length, Access access);
  ExtentMap add(pmem::Region& region, ExtentTable extents, Access access);
  void remove(RemoteKey key);

  // These throw PlatformError as Endpoint says.
  void map(const ExtentMap& map, const Extent& extent);
  void unmap(const ExtentMap& map, Bytes at, Bytes length);
  void allow_appends(const ExtentMap& map, Bytes size_word, RangeFaults& faults);

  // Returns null if the access is to be refused. The caller finds out whether extents cover it when
  // it takes place.
  std::shared_ptr<Registration> find(RemoteAddress address, Bytes length, Access needed) const;

 private:
  RemoteKey add(std::shared_ptr<Registration> memory);
  Registration& extents_of(const ExtentMap& map);
  static void note_change(Registration& memory);

  std::map<std::uint32_t, std::shared_ptr<Registration>> by_key_;
  std::uint32_t made_ = 0;
};

}  // namespace perdura::fabric::tcp
