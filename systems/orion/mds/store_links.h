// The connections of a network thread of the MDS to the data stores: acknowledgments of pages, which
// commits wait for (section 4.3.3), and the ends of sessions. The connections of network thread 0 decide
// which stores are up to date (mds/members.h): it leads all stores from epoch to epoch, and lets those
// that were away catch up.
//
//   store                    MDS
//     ── connects ────────────▶            it is up to date, or out
//     ◀────────────── epoch ──             each change of the members, answered
//     ── catch_up ────────────▶            if it is out: an epoch begins in which clients write to it, too
//     ◀─────────── catch_up ──             now it fetches the pages that were in use at that time
//     ── caught_up ───────────▶            an epoch begins in which it is up to date
//     ◀────────────── probe ──             all the time, answered
//
// A store whose connection is open, and that does not answer for Parameters::store_timeout, counts as lost:
// its connection is ended. It learns of that when it goes on, and begins anew.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "platform/platform.h"
#include "rpc/sessions.h"
#include "systems/orion/mds/metadata.h"
#include "systems/orion/protocol/messages.h"

namespace perdura::systems::orion {

class StoreLinks : public std::enable_shared_from_this<StoreLinks> {
 public:
  // The calls by which a network thread learns of things.
  struct Listener {
    std::function<void(std::uint32_t store, const Ack& ack)> acknowledged;
    std::function<void()> epoch_begins;  // network thread 0 only
  };
  StoreLinks(Thread& thread, const std::string& name, Metadata& metadata,
             const Parameters& parameters, std::uint32_t network_thread,
             fabric::CompletionQueue& completions, Listener listener);

  void start();
  // Ends the connections.
  void clear();
  void accept(fabric::ConnectionRequest& request, const Hello& hello);
  // Returns false if the completion is not that of a store.
  bool received(const fabric::ReceiveCompletion& completion);
  // Returns when no store lets the session write anymore.
  Task<> fence(SessionId session);

 private:
  struct Link {
    std::uint32_t number = 0;  // the store's
    std::unique_ptr<fabric::QueuePair> queue_pair;
    std::uint64_t acks = 0;         // that have arrived
    std::set<SessionId> fencing{};  // sessions of which it is told that they have ended
    std::uint64_t told = 0;         // the last epoch of which it is told
    std::uint64_t noted = 0;        // the last one that it has noted
    bool asks = false;              // to catch up, and has no answer yet
    bool is_probed = false;         // and has not answered
    // By kind of what the store has to answer: the looks of watch() since it was told.
    std::array<int, 3> silent{};
    bool is_free() const { return queue_pair == nullptr; }
  };
  // Each store has a buffer for each kind of message to it.
  enum class Buffer : std::uint32_t { fence, epoch, answer };
  static constexpr std::uint32_t kBuffers = 3;

  bool leads() const { return network_thread_ == 0; }
  void drop(Link& link);
  void received_news(Link& link, const StoreNews& news);
  void send(Link& link, Buffer buffer, const StoreNews& news);
  void change_members();
  static Task<> lead(std::shared_ptr<StoreLinks> self);
  static Task<> watch(std::shared_ptr<StoreLinks> self);
  void look_at(Link& link);
  static Task<> wait_for_stores(std::shared_ptr<StoreLinks> self);
  void prepare_join();
  void answer_join(bool refused, std::uint32_t store);
  bool all_have_noted(std::uint64_t epoch) const;
  fabric::LocalBuffer buffer(std::uint64_t index) const;

  Thread& thread_;
  Metadata& metadata_;
  Parameters parameters_;
  std::uint32_t network_thread_;
  fabric::CompletionQueue& completions_;
  Listener listener_;
  std::uint32_t max_inline_;
  rpc::SessionTable<Link> links_;
  std::unique_ptr<pmem::Region> memory_;  // receive buffers, then those for messages to stores
  fabric::MemoryRegion registered_;
  std::unique_ptr<fabric::ReceiveQueue> buffers_;
  std::unique_ptr<pmem::Region> acks_;  // kAcks slots for each store
  std::vector<fabric::MemoryRegion> acks_of_;
  std::unique_ptr<pmem::Region> in_use_;  // the bits of a group's pages, for the store that joins
  fabric::MemoryRegion in_use_registered_;
  WaitList changed_;
  bool is_leading_ = false;
};

}  // namespace perdura::systems::orion
