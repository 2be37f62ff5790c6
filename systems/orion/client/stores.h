// A session's access to the pages of data stores: its own node's by loads and stores, those of others
// by one-sided operations (section 4.3.2). All stores of a replication group have the same pages; a
// page is read from one of them, and written to all.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "methods/durable_write.h"
#include "platform/platform.h"
#include "rpc/calls.h"
#include "rpc/receive_buffers.h"
#include "services/fs/fs.h"
#include "systems/orion/protocol/layout.h"
#include "systems/orion/protocol/messages.h"
#include "systems/orion/protocol/parameters.h"

namespace perdura::systems::orion {

// How far a write of pages has come when it returns.
enum class Written : std::uint8_t {
  sent,     // it will reach the stores (weak consistency)
  noticed,  // each store will force it and tell the MDS (strong consistency)
  durable,
};

class Stores {
 public:
  // `local`: the pages of the store on this node, or null. `method` makes a page durable that was sent to
  // another node; absent: the paper's way, by `strong` or not.
  Stores(Thread& thread, const fs::FsConfig& config, const Parameters& parameters,
         std::uint64_t mount, pmem::Region* local);

  // The group of which this node is a member; nullopt if it has no store.
  std::optional<std::uint32_t> own_group() const { return own_group_; }
  bool is_local(std::uint64_t gpa) const { return own_group_ && group_of(gpa) == *own_group_; }
  pmem::Region& local() { return *local_; }
  // The stores of a group that are on other nodes.
  std::uint32_t others(std::uint64_t gpa) const;

  // READs a page into a buffer of the registered memory. Returns false if no store of its group can
  // be reached.
  Task<bool> read(std::uint64_t gpa, fabric::LocalBuffer into);
  // Writes a page to all stores of its group. Returns nothing if one cannot be reached.
  Task<std::optional<Written>> write(std::uint64_t gpa, fabric::LocalBuffer from);
  // Forces the pages that were only sent.
  Task<bool> force_all();

  std::uint64_t reads() const { return reads_; }
  std::uint64_t writes() const { return writes_; }

 private:
  struct Member {
    NodeId node{};
    std::uint32_t group = 0;
    bool is_local = false;
    bool connecting = false;
    bool failed = false;
    WaitList waiting{};
    std::unique_ptr<fabric::QueuePair> queue_pair{};
    fabric::RemoteKey key{};
    fabric::CompletionQueue completions{};
    std::unique_ptr<pmem::Region> memory{};  // receive buffers, requests, and words for READs
    fabric::MemoryRegion registered{};
    rpc::ReceiveBuffers answers{};
    rpc::Calls<Forced> calls{};
    std::vector<std::uint64_t> unforced{};  // pages that were only sent
  };
  static constexpr std::uint32_t kCalls = 32;

  Task<bool> connect(Member& member);
  Task<bool> write_to(Member& member, std::uint64_t gpa, fabric::LocalBuffer from);
  Task<bool> force(Member& member, std::uint64_t page);
  bool notices() const;

  Thread& thread_;
  std::uint64_t mount_;
  Parameters parameters_;
  pmem::Region* local_;
  std::optional<std::uint32_t> own_group_;
  std::vector<std::unique_ptr<Member>> members_;
  bool durable_ = false;  // by `method_`
  methods::DurableWrite method_;
  std::uint64_t reads_ = 0;
  std::uint64_t writes_ = 0;
};

}  // namespace perdura::systems::orion
