// A session's connection to the MDS, with the three ways in which clients use it (section 4.2.1):
// RDMA READs of inodes and logs, log commits, and RPCs.
//
// If the connection breaks, whatever is under way ends; the next use connects again, for as long as
// Parameters::mds_patience. To the MDS that is another session: the pages that the former one had
// are others', and copies of logs may contain what a failure has undone. Connections are numbered, so
// that users notice (connection()).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "platform/platform.h"
#include "rpc/calls.h"
#include "rpc/receive_buffers.h"
#include "systems/nova/layout.h"
#include "systems/orion/protocol/known_pages.h"
#include "systems/orion/protocol/layout.h"
#include "systems/orion/protocol/messages.h"
#include "systems/orion/protocol/parameters.h"
#include "systems/orion/protocol/payload_room.h"

namespace perdura::systems::orion {

// A request to the MDS, before it is in a buffer.
struct Outgoing {
  MessageHeader header{};
  Arguments arguments{};
  std::string_view name{};
  std::string_view other_name{};
  // For a commit the entries, for others the payload.
  std::span<const std::byte> payload{};
  std::span<const Force> forces{};  // that a commit waits for
  // Not 0: the number of the connection to which it belongs. Over another one it is not sent, and is
  // answered kStale.
  std::uint64_t connection = 0;
};

class MdsLink {
 public:
  // `mds`: the node to try first, if the MDS has a mirror. `mount` identifies the mount. `published`: READ the words that the MDS publishes when they are
  // durable, instead of those in its persistent memory.
  MdsLink(Thread& thread, NodeId mds, const Parameters& parameters, std::uint64_t mount,
          bool published);

  // Connects if there is no connection. Returns false if the MDS cannot be reached.
  Task<bool> connect();
  NodeId mds() const { return mds_; }
  // The number of the connection, from 1; 0 before the first.
  std::uint64_t connection() const { return number_; }
  // Ends the connection.
  void disconnect() {
    if (connection_) connection_->calls.fail();
  }
  // Its session, as the servers know it.
  SessionId session() const { return id_; }
  // Called over each connection but the first, before anyone else uses it; may use call_now().
  void when_connected_again(std::function<Task<bool>()> call) {
    connected_again_ = std::move(call);
  }
  // call() without connecting.
  Task<std::optional<Reply>> call_now(Outgoing request);
  // Valid after connect().
  const Welcome& welcome() const { return welcome_; }
  const nova::Geometry& geometry() const { return geometry_; }

  // Sends a request and returns the answer; nullopt if the connection broke.
  Task<std::optional<Reply>> call(Outgoing request);
  // Sends a commit without an answer; returns when the MDS' device has it. False if the connection
  // broke.
  Task<bool> send(Outgoing request);

  // The stores that clients use, as far as the session knows. They are at least as new as the words of
  // inodes that it has READ: whoever goes by these words may READ pages from them.
  const MembersLine& members() const { return members_; }
  Task<bool> read_members();

  // One-sided READs. Each returns false if the connection broke.
  Task<bool> read_words(std::uint64_t inode, InodeWords& words);
  // READs the words of two inodes in one round trip, those of `later` not before the others.
  Task<bool> read_words(std::uint64_t inode, InodeWords& words, std::uint64_t later,
                        InodeWords& later_words);
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
    // The time from the beginning of each to its completion; they overlap where several are under way.
    Picoseconds in_tail_reads{};
    Picoseconds in_log_reads{};
    Picoseconds in_commits{};
    Picoseconds in_rpcs{};
  };
  const Counts& counts() const { return counts_; }

 private:
  static constexpr std::uint32_t kCalls = 16;
  struct MdsConnection {
    fabric::CompletionQueue completions{};
    rpc::Calls<Reply> calls{};
    rpc::ReceiveBuffers replies{};
    std::unique_ptr<fabric::QueuePair> queue_pair{};
    bool works() const { return queue_pair && queue_pair->connected() && !calls.broken(); }
  };
  using Connected = std::shared_ptr<MdsConnection>;  // lives until its last operation has ended

  void prepare_memory();
  bool works() const { return connection_ && connection_->works(); }
  Task<> establish();
  // The operations that the counts include.
  Task<std::optional<Reply>> exchange(Outgoing request);
  Task<bool> send_only(Outgoing request);
  Task<bool> fetch(Bytes offset, fabric::LocalBuffer into);
  Task<bool> fetch_copy(Bytes offset, std::span<std::byte> into);
  Task<bool> fetch_words(std::uint64_t inode, InodeWords& words, std::uint64_t later,
                         InodeWords* later_words);
  fabric::RemoteAddress words_of(std::uint64_t inode) const;
  Task<Connected> try_to_connect();
  // READs the line at `from`, and the one at `later` after it unless that line is empty.
  Task<bool> read_lines(fabric::RemoteAddress from, std::span<std::byte> line,
                        fabric::RemoteAddress later, std::span<std::byte> later_line);
  std::uint32_t compose(rpc::Call call, const Outgoing& request);
  static void take(MdsConnection& connection, const fabric::ReceiveCompletion& completion);
  fabric::LocalBuffer request_buffer(rpc::Call call) const;

  Thread& thread_;
  NodeId mds_;
  Parameters parameters_;
  std::uint64_t mount_;
  bool published_;
  bool is_connecting_ = false;
  WaitList connecting_;
  std::uint64_t number_ = 0;    // the number of the connection
  std::uint64_t attempts_ = 0;  // each as a session of its own
  SessionId id_{};
  std::optional<Time> failing_since_{};
  std::function<Task<bool>()> connected_again_{};
  Welcome welcome_;
  MembersLine members_;
  KnownPages pages_;
  nova::Geometry geometry_;
  std::unique_ptr<pmem::Region> memory_;
  fabric::MemoryRegion registered_;
  PayloadRoom payload_;  // the MDS READs it
  Semaphore scratch_turns_{kCalls};
  std::vector<std::uint32_t> scratch_;  // free scratch buffers
  Connected connection_;
  Counts counts_;
};

}  // namespace perdura::systems::orion
