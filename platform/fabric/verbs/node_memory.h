// The memory of a local node: its registrations with the device, the keys that stand for them, and
// the local keys of buffers. Used by all threads of the node.
//
// A key is a number that the node never reuses, not the device's rkey. Peers look up the range of a
// key when they first use it. Remote offsets therefore count from the start of the registered
// range, and a device that reuses its rkeys cannot cause a stale key to match.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "platform/fabric/verbs/control_message.h"
#include "platform/fabric/verbs/device.h"
#include "platform/pmem/region.h"

namespace perdura::fabric::verbs {

// The range that a key stands for: the information that a peer needs to access it.
struct RemoteRange {
  std::uint64_t address = 0;
  Bytes length = 0;
  Bytes region_offset = 0;  // where the range begins in its region, for accounting
  std::uint32_t device_key = 0;
  Access access = Access::local;
  pmem::Medium medium = pmem::Medium::dram;
  bool flush_persistence = false;  // FLUSH for persistence may be requested

  bool holds(Bytes offset, Bytes size) const { return offset <= length && size <= length - offset; }
};
void put_range(const std::optional<RemoteRange>& range, Message& message);
std::optional<RemoteRange> range_in(const Message& message);

// Memory that may contain local buffers, and the device's key for it.
struct LocalKey {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  std::uint32_t value = 0;
  bool holds(const std::byte* from, std::uint32_t length) const {
    return from >= begin && from < end && length <= static_cast<Bytes>(end - from);
  }
};

class NodeMemory {
 public:
  explicit NodeMemory(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  // To be called when a region is created, and when it is destroyed, which removes its
  // registrations. A region that was opened twice counts twice.
  void add(std::byte* base, Bytes size, pmem::Medium medium, const std::string& path);
  void remove(const std::byte* base);

  // Throws PlatformError, with a remedy, if the device refuses or the region is not this node's.
  RemoteKey publish(pmem::Region& region, Bytes offset, Bytes length, Access access);
  void revoke(RemoteKey key);
  std::optional<RemoteRange> find(std::uint32_t key) const;

  // Finds out whether FLUSH for persistence may be requested for a region's memory; the result
  // applies to all persistent memory of the node.
  void try_flush_persistence(pmem::Region& region);
  bool flush_persistence() const { return flush_persistence_; }

  // The key for a buffer of a region; registers the whole region if the buffer is not in registered
  // memory.
  LocalKey local_key(pmem::Region& region, Bytes offset, std::uint32_t length);
  // Counts removals. If it has changed, local keys that were looked up before may be invalid.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  struct Registered {
    std::uint32_t key = 0;  // 0: for local buffers only
    Bytes offset = 0;
    Bytes length = 0;
    Access access = Access::local;
    bool flush_persistence = false;
    Handle<ibv_mr> memory{};
  };
  struct Backing {
    Bytes size = 0;
    pmem::Medium medium = pmem::Medium::dram;
    std::string path{};
    int uses = 0;
    std::vector<Registered> registered{};
  };

  Backing& backing_of(pmem::Region& region);
  Registered enlist(pmem::Region& region, const Backing& backing, Bytes offset, Bytes length,
                    Access access) const;

  std::shared_ptr<Device> device_;
  mutable std::mutex mutex_;
  std::map<const std::byte*, Backing> regions_;
  std::map<std::uint32_t, const std::byte*> keys_;
  std::uint32_t published_ = 0;
  std::atomic<std::uint64_t> version_{0};
  bool flush_persistence_ = false;  // set before any thread runs
};

}  // namespace perdura::fabric::verbs
