// A data store: pages in persistent memory, which clients READ and WRITE without its CPU
// (section 4.3.2). Its CPU forces pages that clients wrote into persistent memory: for each WRITE
// with the page's number as immediate, which it acknowledges to the MDS by a small WRITE
// (section 4.3.3), and on request, which it answers.
//
// A store that was away is led by the MDS: it learns whether it is up to date, and catches up if it is
// not (mds/store_links.h). It lets sessions in when the MDS has told it of an epoch, and only those that
// know this epoch or a later one: sessions that ended while it was away do not.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "rpc/sessions.h"
#include "services/fs/fs.h"
#include "systems/orion/protocol/messages.h"
#include "systems/orion/protocol/parameters.h"
#include "systems/orion/store/catch_up.h"
#include "systems/orion/store/journal.h"
#include "systems/orion/store/local_rights.h"

namespace perdura::systems::orion {

// Makes a store's regions on this node.
void make_store(Node& node, const std::string& name, const Parameters& parameters,
                std::uint32_t group);
// Opens the pages of the store on this node. Throws UsageError if there is none, or it is another
// one.
std::unique_ptr<pmem::Region> open_pages(Node& node, const std::string& name,
                                         const Parameters& parameters, std::uint32_t group);

class Store final : public fs::FsServer, public std::enable_shared_from_this<Store> {
 public:
  Store(Thread& thread, std::string name, const Parameters& parameters, NodeId mds,
        std::uint32_t group);

  Task<> serve(Thread& thread) override;
  std::vector<std::uint64_t> events() const override;
  std::vector<double> metrics() const override {
    return {0,
            0,
            0,
            0,
            static_cast<double>(forced_),
            0,
            0,
            0,
            static_cast<double>(catch_ups_),
            static_cast<double>(fetched_)};
  }

 private:
  struct StoreSession {
    std::uint32_t number = 0;
    SessionId id{};
    std::uint32_t at_mds = 0;    // its number there
    std::uint64_t sequence = 0;  // number of its last WRITE with an immediate
    std::unique_ptr<fabric::ReceiveQueue> buffers;
    std::unique_ptr<fabric::QueuePair> queue_pair;
    bool is_free() const { return queue_pair == nullptr; }
  };

  // Lives as long as a thread serves.
  struct Serving {
    Store& store;
    ~Serving();
  };

  void accept(fabric::ConnectionRequest& request);
  void handle(const fabric::ReceiveCompletion& completion);
  void received_from_mds(std::uint32_t network_thread, const fabric::ReceiveCompletion& completion);
  void end_session(SessionId id);
  void begin_epoch(const StoreNews& news);
  void disconnect(StoreSession& session);
  bool force(std::uint64_t page, std::uint64_t count);
  void force_immediate(StoreSession& session, std::uint32_t page);
  // Answers that a session has ended when it can store into no page of this node any more.
  static Task<> answer_fence(std::shared_ptr<Store> self, std::uint32_t network_thread,
                             StoreNews news);
  Task<> until_sessions_are_idle();
  bool is_connected() const;
  static Task<> stay_connected(std::shared_ptr<Store> self);
  Task<bool> connect_mds(std::uint32_t network_thread);
  static Task<> catch_up(std::shared_ptr<Store> self);
  Task<bool> fetch_missing();
  void acknowledge(const StoreSession& session, std::uint32_t page);
  enum class MdsBuffer : std::uint32_t { ends, epoch, catch_up, caught_up };
  void tell_mds(std::uint32_t network_thread, MdsBuffer buffer, const StoreNews& news);
  std::uint64_t buffer_count() const;
  fabric::LocalBuffer buffer(std::uint64_t index) const;
  fabric::LocalBuffer receive_buffer(const StoreSession& session, std::uint64_t index) const;
  fabric::LocalBuffer answer_buffer(const StoreSession& session, std::uint32_t call) const;
  fabric::LocalBuffer mds_buffer(std::uint64_t index) const;
  fabric::LocalBuffer to_mds(std::uint32_t network_thread, MdsBuffer buffer) const;

  Thread* thread_ = nullptr;
  std::string name_;
  Parameters parameters_;
  NodeId mds_;
  std::uint32_t group_;
  std::unique_ptr<pmem::Region> pages_;
  // Two servers of the same pages would overwrite what the other one has acknowledged.
  std::shared_ptr<void> ownership_;
  fabric::MemoryRegion pages_memory_;
  std::unique_ptr<pmem::Region> buffers_;
  fabric::MemoryRegion buffer_memory_;
  fabric::MemoryRegion journal_memory_;
  std::unique_ptr<pmem::Region> acks_;  // from which acknowledgments are sent
  fabric::MemoryRegion ack_memory_;
  std::uint32_t max_inline_ = 0;
  fabric::CompletionQueue completions_;
  rpc::SessionTable<StoreSession> sessions_;
  // Sessions that have ended, which may not come back. Each takes a few bytes for as long as the
  // store serves.
  std::set<SessionId> fenced_;
  std::unique_ptr<fabric::ReceiveQueue> mds_buffers_;
  // A connection to each network thread of the MDS.
  struct MdsConnection {
    std::unique_ptr<fabric::QueuePair> queue_pair{};
    MdsWelcome welcome{};
    std::uint64_t acks = 0;  // sent
  };
  std::vector<MdsConnection> mds_connections_;
  WaitList mds_changed_;
  std::unique_ptr<Journal> journal_;  // null if the group has no other store
  std::uint64_t epoch_ = 0;           // the last one in which it was up to date, durable
  std::uint64_t since_ = 0;  // the first epoch of which it was told; 0: none since it connected
  StoreState state_ = StoreState::out;
  bool is_catching_up_ = false;
  bool has_gap_ = false;               // pages that it fetched are not in its journal
  std::optional<StoreNews> answer_{};  // to catch_up
  CatchUp catch_up_;
  LocalRights local_rights_;
  std::uint64_t forced_ = 0;
  std::uint64_t fetched_ = 0;
  std::uint64_t catch_ups_ = 0;
};

}  // namespace perdura::systems::orion
