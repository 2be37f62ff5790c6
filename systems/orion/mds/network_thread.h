// A network thread of the MDS (section 4.2.2): receives the requests of its sessions, appends log
// commits itself, hands RPCs to the file-system thread of their inode, and answers both.
//
//   client ── SEND ──▶ network thread ── commit: append, answer ─────────────▶ client
//                            │   ▲
//                            ▼   │ RPC: by inode number
//                       file-system thread
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "rpc/sessions.h"
#include "systems/orion/mds/requests.h"
#include "systems/orion/mds/session.h"
#include "systems/orion/mds/store_links.h"
#include "systems/orion/protocol/payload_room.h"

namespace perdura::systems::orion {

// Executes RPCs of the inodes that are its own.
struct FsThread {
  std::unique_ptr<BackgroundThread> thread;
  std::unique_ptr<Requests> requests;
};

// The counts of a network thread.
struct MdsCounts {
  std::uint64_t commits = 0;
  std::uint64_t rpcs = 0;
  std::uint64_t forces = 0;     // acknowledgments of stores
  std::uint64_t malformed = 0;  // messages; each ends its session
  std::uint64_t dropped = 0;    // speculative commits that could not be appended
  // Time in which the network thread handled messages, and in which the file-system threads executed
  // its RPCs; without waiting.
  Picoseconds handling{};
  Picoseconds executing{};
};

class NetworkThread : public std::enable_shared_from_this<NetworkThread> {
 public:
  // `fs_threads` may be empty; then RPCs are executed here.
  NetworkThread(Thread& thread, const std::string& name, Metadata& metadata,
                std::span<FsThread> fs_threads, const Parameters& parameters,
                std::uint32_t context);

  // With `accepts`, accepts all connections of the endpoint; otherwise somebody else passes them on.
  Task<> serve(bool accepts);
  void accept(fabric::ConnectionRequest& request);
  const MdsCounts& counts() const { return counts_; }
  // Ends the sessions of a mount. Returns when what they held has been released.
  Task<> end_mount(std::uint64_t mount);

  // The calls that a session may have under way.
  static constexpr std::uint32_t kCalls = 16;

 private:
  // Lives as long as the thread serves.
  struct Serving {
    NetworkThread& network;
    ~Serving();
  };

  void accept_session(fabric::ConnectionRequest& request, const Hello& hello);
  void acknowledged(std::uint32_t store, const Ack& ack);
  void handle(const fabric::ReceiveCompletion& completion);
  void received(MdsSession& session, const fabric::ReceiveCompletion& completion);
  void end(MdsSession& session);
  Task<> finish(std::shared_ptr<NetworkThread> self, MdsSession& session);
  // Waits until the stores have forced the pages of a commit. Returns false if the members have changed.
  Task<bool> await_forces(const MdsSession& session, const ParsedRequest& request);
  static Task<> look_for_epochs(std::shared_ptr<NetworkThread> self);
  bool commit(MdsSession& session, const ParsedRequest& request);
  Task<> catch_up(std::shared_ptr<NetworkThread> self, std::uint64_t inode);
  // Answers when the mirror has what the request has done.
  Task<> settle(std::shared_ptr<NetworkThread> self, MdsSession& session, MessageHeader header,
                Reply reply);
  // Ends all connections, since another node is the MDS, or there is no mirror.
  void stop();
  Task<> settle_and_answer(MdsSession& session, const MessageHeader& header, const Reply& reply);
  Task<> call(std::shared_ptr<NetworkThread> self, MdsSession& session,
              std::vector<std::byte> message);
  // READs the payload of a request from the client's memory. Returns false if that fails.
  Task<bool> fetch_payload(MdsSession& session, ParsedRequest& request,
                           std::vector<std::byte>& payload);
  Task<Reply> execute(MdsSession& session, const ParsedRequest& request);
  // Executes a request on the thread that has its inode.
  Task<Reply> execute_now(MdsSession& session, const ParsedRequest& request);
  // Waits while inodes that the request changes are reserved for others.
  Task<Reservations::Ticket> take_turn(MdsSession& session, const ParsedRequest& request);
  // The request has had its turn. Reserves the inode if it was refused too often.
  Task<> end_turn(MdsSession& session, const ParsedRequest& request, const Reply& reply,
                  Reservations::Ticket ticket);
  Task<> until_turn(Reservations::Ticket ticket);
  void answer(MdsSession& session, const MessageHeader& header, Reply reply);
  SessionNumber number_of(const MdsSession& session) const {
    return context_ * static_cast<SessionNumber>(sessions_.size()) + session.number;
  }
  Requester requester_of(const MdsSession& session) const {
    return {number_of(session), session.id.mount};
  }
  std::uint32_t receive_buffers() const {
    return static_cast<std::uint32_t>(parameters_.session_buffers / kMessageRoom);
  }
  fabric::LocalBuffer receive_buffer(const MdsSession& session, std::uint64_t index) const;
  fabric::LocalBuffer reply_buffer(const MdsSession& session, std::uint32_t call) const;

  Thread& thread_;
  Metadata& metadata_;
  std::span<FsThread> fs_threads_;
  Parameters parameters_;
  std::uint32_t context_;
  Requests requests_;  // executes what this thread executes
  MdsCounts counts_;
  std::unique_ptr<pmem::Region> buffers_;  // receive buffers, in persistent memory
  fabric::MemoryRegion buffer_memory_;
  std::unique_ptr<pmem::Region> replies_;
  fabric::MemoryRegion reply_memory_;
  PayloadRoom payload_;
  fabric::MemoryRegion volume_memory_;
  fabric::MemoryRegion words_memory_;
  std::uint32_t max_inline_;
  fabric::CompletionQueue completions_;
  rpc::SessionTable<MdsSession> sessions_;
  std::shared_ptr<StoreLinks> stores_;
  WaitList forced_;
  std::uint32_t awaiting_ = 0;  // commits that wait for stores
  bool looks_ = false;
  WaitList ended_;
};

}  // namespace perdura::systems::orion
