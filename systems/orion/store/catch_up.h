// How a data store gets the pages that it has missed, from another one of its group (section 4.3.4): all
// that are in use at the MDS, or, if that is enough, those of them that the other one's journal has since
// this store was up to date. Both are READ without the CPUs of the others.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "systems/nova/allocator.h"
#include "systems/orion/protocol/parameters.h"

namespace perdura::systems::orion {

class CatchUp {
 public:
  // `pages` is this store's memory.
  CatchUp(Thread& thread, std::string name, const Parameters& parameters, std::uint32_t group,
          const fabric::MemoryRegion& pages)
      : thread_(thread),
        name_(std::move(name)),
        parameters_(parameters),
        group_(group),
        pages_(pages) {}

  struct Missing {
    fabric::QueuePair& mds;
    fabric::RemoteKey in_use;  // the bits of the pages in use, at the MDS
    NodeId peer{};             // the node of a store that is up to date
    bool everything = false;
    std::uint64_t since = 0;  // the last epoch in which this store was up to date
  };
  // Fetches the pages; they are durable when it returns. Returns their number, or nullopt if one of the
  // others is gone.
  Task<std::optional<std::uint64_t>> fetch(Missing missing);

 private:
  struct Peer {
    fabric::CompletionQueue completions{};
    std::unique_ptr<fabric::ReceiveQueue> buffers{};
    std::unique_ptr<fabric::QueuePair> queue_pair{};
    fabric::RemoteKey pages{};
    fabric::RemoteKey journal{};
  };
  Task<bool> connect(Peer& peer, NodeId node);
  Task<bool> read(fabric::QueuePair& from, fabric::RemoteKey key, std::span<std::byte> into);
  Task<bool> read_pages(Peer& peer, const std::vector<nova::Extent>& extents);

  Thread& thread_;
  std::string name_;
  Parameters parameters_;
  std::uint32_t group_;
  const fabric::MemoryRegion& pages_;
  std::unique_ptr<pmem::Region> memory_;
  fabric::MemoryRegion registered_;
};

}  // namespace perdura::systems::orion
