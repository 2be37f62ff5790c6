// A data store: pages in persistent memory, which clients READ and WRITE without its CPU
// (section 4.3.2). Its CPU forces pages that clients wrote into persistent memory: for each WRITE
// with the page's number as immediate, which it acknowledges to the MDS by a small WRITE
// (section 4.3.3), and on request, which it answers.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "rpc/sessions.h"
#include "services/fs/fs.h"
#include "systems/orion/protocol/messages.h"
#include "systems/orion/protocol/parameters.h"

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
    return {0, 0, 0, 0, static_cast<double>(forced_)};
  }

 private:
  struct StoreSession {
    std::uint32_t number = 0;
    SessionId id{};
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
  void received_from_mds(const fabric::ReceiveCompletion& completion);
  void disconnect(StoreSession& session);
  bool force(std::uint64_t page, std::uint64_t count);
  Task<> connect_mds(std::shared_ptr<Store> self);
  void acknowledge(std::uint32_t page);
  std::uint64_t buffer_count() const;
  fabric::LocalBuffer buffer(std::uint64_t index) const;
  fabric::LocalBuffer receive_buffer(const StoreSession& session, std::uint64_t index) const;
  fabric::LocalBuffer answer_buffer(const StoreSession& session, std::uint32_t call) const;
  fabric::LocalBuffer mds_buffer(std::uint64_t index) const;
  fabric::LocalBuffer fence_answer(std::uint32_t network_thread) const;

  Thread* thread_ = nullptr;
  std::string name_;
  Parameters parameters_;
  NodeId mds_;
  std::uint32_t group_;
  std::unique_ptr<pmem::Region> pages_;
  fabric::MemoryRegion pages_memory_;
  std::unique_ptr<pmem::Region> buffers_;
  fabric::MemoryRegion buffer_memory_;
  std::uint32_t max_inline_ = 0;
  fabric::CompletionQueue completions_;
  rpc::SessionTable<StoreSession> sessions_;
  // Sessions that have ended, which may not come back. Each takes a few bytes for as long as the
  // store serves.
  std::set<SessionId> fenced_;
  std::unique_ptr<fabric::ReceiveQueue> mds_buffers_;
  std::vector<std::unique_ptr<fabric::QueuePair>> mds_connections_;
  std::vector<fabric::RemoteAddress> mds_places_;
  std::vector<std::uint32_t> unacknowledged_;  // pages whose acknowledgment waits for a connection
  std::uint64_t forced_ = 0;
};

}  // namespace perdura::systems::orion
