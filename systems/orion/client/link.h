// A session's connection to the MDS, with the three ways in which clients use it (section 4.2.1):
// RDMA READs of inodes and logs, log commits, and RPCs.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "platform/platform.h"
#include "rpc/calls.h"
#include "rpc/receive_buffers.h"
#include "systems/nova/layout.h"
#include "systems/orion/protocol/layout.h"
#include "systems/orion/protocol/messages.h"
#include "systems/orion/protocol/parameters.h"

namespace perdura::systems::orion {

// The pages that log entries may refer to, as a client knows them.
class KnownPages final : public nova::Owner {
 public:
  void set(std::uint32_t groups, std::uint64_t pages) {
    groups_ = groups;
    pages_ = pages;
  }
  bool are_pages(std::uint64_t first, std::uint64_t count) const override {
    return group_of(first) < groups_ && page_of(first) >= 1 && page_of(first) < pages_ &&
           count <= pages_ - page_of(first);
  }
  // Only the MDS manages pages.
  std::uint64_t mark_used(std::uint64_t, std::uint64_t) override { return 0; }
  void free(std::uint64_t, std::uint64_t) override {}
  bool is_used(std::uint64_t) const override { return true; }
  void changed(std::uint64_t) override {}

 private:
  std::uint32_t groups_ = 0;
  std::uint64_t pages_ = 0;
};

// A request to the MDS, before it is in a buffer.
struct Outgoing {
  MessageHeader header{};
  Arguments arguments{};
  std::string_view name{};
  std::string_view other_name{};
  // For a commit the entries, for others the payload.
  std::span<const std::byte> payload{};
};

class MdsLink {
 public:
  // `mount` identifies the mount. `published`: READ the words that the MDS publishes when they are
  // durable, instead of those in its persistent memory.
  MdsLink(Thread& thread, NodeId mds, const Parameters& parameters, std::uint64_t mount,
          bool published);

  // Connects if that has not been done. Returns false if the MDS cannot be reached, or is gone.
  Task<bool> connect();
  // Valid after connect().
  const Welcome& welcome() const { return welcome_; }
  const nova::Geometry& geometry() const { return geometry_; }

  // Sends a request and returns the answer; nullopt if the connection broke.
  Task<std::optional<Reply>> call(Outgoing request);
  // Sends a commit without an answer; returns when the MDS' device has it. False if the connection
  // broke.
  Task<bool> send(Outgoing request);

  // One-sided READs. Each returns false if the connection broke.
  Task<bool> read_words(std::uint64_t inode, InodeWords& words);
  Task<bool> read_record(std::uint64_t inode, nova::InodeRecord& record);
  // Bytes of the MDS' region.
  Task<bool> read(Bytes offset, fabric::LocalBuffer into);
  // The same, for bytes of any number that go into ordinary memory.
  Task<bool> read_copy(Bytes offset, std::span<std::byte> into);

  struct Counts {
    std::uint64_t tail_reads = 0;
    std::uint64_t log_reads = 0;
    std::uint64_t commits = 0;
    std::uint64_t rpcs = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  static constexpr std::uint32_t kCalls = 16;
  enum class State : std::uint8_t { fresh, connecting, connected, gone };

  Task<> establish();
  std::uint32_t compose(rpc::Call call, const Outgoing& request);
  void take(const fabric::ReceiveCompletion& completion);
  fabric::LocalBuffer request_buffer(rpc::Call call) const;

  Thread& thread_;
  NodeId mds_;
  Parameters parameters_;
  std::uint64_t mount_;
  bool published_;
  State state_ = State::fresh;
  WaitList connecting_;
  Welcome welcome_;
  KnownPages pages_;
  nova::Geometry geometry_;
  std::unique_ptr<pmem::Region> memory_;
  fabric::MemoryRegion registered_;
  fabric::MemoryRegion payload_;  // its part for payloads by reference, which the MDS READs
  Semaphore payload_turn_{1};
  Semaphore scratch_turns_{kCalls};
  std::vector<std::uint32_t> scratch_;  // free scratch buffers
  fabric::CompletionQueue completions_;
  rpc::Calls<Reply> calls_;
  rpc::ReceiveBuffers replies_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
  Counts counts_;
};

}  // namespace perdura::systems::orion
