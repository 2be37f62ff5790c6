// A session's access to the pages of data stores: its own node's by loads and stores, those of others
// by one-sided operations (section 4.3.2). All stores of a replication group have the same pages; a
// page is read from one of them that is up to date, and written to all of them, and to those that catch
// up (mds/members.h).
//
// A store that does not answer may be one without which the others go on: the MDS says so soon. Until
// then, and for as long as Parameters::client_patience, operations try again.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include "methods/durable_write.h"
#include "platform/platform.h"
#include "rpc/calls.h"
#include "rpc/receive_buffers.h"
#include "services/fs/fs.h"
#include "systems/orion/client/link.h"
#include "systems/orion/protocol/layout.h"
#include "systems/orion/protocol/messages.h"
#include "systems/orion/protocol/parameters.h"
#include "systems/orion/store/local_rights.h"

namespace perdura::systems::orion {

// How the pages of a commit were written.
struct PagesSent {
  // MdsLink::connection() of the session whose pages they are. Once that has ended they may be
  // another one's, so nothing is written to them over a later connection.
  std::uint64_t connection = 0;
  std::uint64_t epoch = 0;      // 0: none yet
  std::vector<Force> forces{};  // that the commit has to wait for
  bool by_immediates = true;    // all stores got all of them by WRITEs with immediates
};

class Stores {
 public:
  // `local`: the pages of the store on this node, or null. FsConfig::data_method makes a page durable that was sent to
  // another node; absent: the paper's way, by `strong` or not.
  Stores(Thread& thread, const fs::FsConfig& config, const Parameters& parameters, MdsLink& link,
         pmem::Region* local);

  // The group of which this node is a member; nullopt if it has no store.
  std::optional<std::uint32_t> own_group() const { return own_group_; }
  // True if this node's store has the page, and is up to date.
  bool is_local(std::uint64_t gpa) const {
    return own_group_ && group_of(gpa) == *own_group_ &&
           contains(link_.members().members, own_store_);
  }
  pmem::Region& local() { return *local_; }
  // Must be called after the session has connected to the MDS anew, and before it takes pages. Asks the
  // store of the client's own node for the right to write to its pages directly.
  void begin_session();
  // True if a group has several stores.
  bool is_replicated() const { return parameters_.stores.size() > parameters_.groups; }

  // READs a page into a buffer of the registered memory. Returns false if no store of its group can
  // be reached.
  Task<bool> read(std::uint64_t gpa, fabric::LocalBuffer into);
  // The same in two steps, so that several pages are on their way at a time. The buffer and `read` must
  // stay until end_read() has returned, which must follow begin_read().
  class PageRead;
  Task<> begin_read(std::uint64_t gpa, fabric::LocalBuffer into, PageRead& read);
  Task<bool> end_read(PageRead& read);
  // Writes a page to the stores of its group. Returns resource_unavailable_try_again if the pages of the
  // commit have to be written again, not_connected if a store cannot be reached.
  Task<std::errc> write(std::uint64_t gpa, fabric::LocalBuffer from, PagesSent& sent);
  // The same in two steps, so that several pages are on their way at a time. end_write() must follow
  // begin_write(), in the order of the pages, and the buffer and `write` must stay until then.
  class PageWrite;
  Task<> begin_write(std::uint64_t gpa, fabric::LocalBuffer from, PagesSent& sent,
                     PageWrite& write);
  Task<std::errc> end_write(PageWrite& write, const PagesSent& sent);
  // The MDS has refused pages, since the epoch has changed. Returns as write() does.
  Task<std::errc> follow_members(std::uint64_t epoch);
  // Forces the pages that were only sent. Returns false if some may be lost.
  Task<bool> force_all();

  std::uint64_t reads() const { return reads_; }
  std::uint64_t writes() const { return writes_; }
  // The time from the beginning of each read and write to its completion.
  Picoseconds in_reads() const { return in_reads_; }
  Picoseconds in_writes() const { return in_writes_; }

 private:
  struct StoreConnection {
    fabric::RemoteKey key{};
    fabric::CompletionQueue completions{};
    std::unique_ptr<pmem::Region> memory{};  // receive buffers, requests, and words for READs
    fabric::MemoryRegion registered{};
    rpc::ReceiveBuffers answers{};
    rpc::Calls<Forced> calls{};
    // It is closed first: that takes its completions out of their queue.
    std::unique_ptr<fabric::QueuePair> queue_pair{};
    std::uint64_t sequence = 0;    // number of the last WRITE with an immediate
    std::uint64_t of_session = 0;  // MdsLink::connection()
    bool works() const { return queue_pair && queue_pair->connected() && !calls.broken(); }
  };
  using Connected = std::shared_ptr<StoreConnection>;  // lives until its last operation has ended
  struct Store {
    std::uint32_t number = 0;
    NodeId node{};
    std::uint32_t group = 0;
    bool is_local = false;
    bool connecting = false;
    WaitList waiting{};
    Connected connection{};
    std::uint64_t connections = 0;  // that there have been
    std::optional<Time> failing_since{};
    std::vector<std::uint64_t> unforced{};  // pages that were only sent
    bool has_lost = false;                  // perhaps some of these
  };
  static constexpr std::uint32_t kCalls = 32;

 public:
  struct Posted {
    Posted(Connected of, const fabric::WorkRequest& request)
        : connection(std::move(of)), operation(*connection->queue_pair, request) {}
    Connected connection;  // outlives the operation
    fabric::RdmaOperation operation;
  };
  class PageRead {
    friend class Stores;
    std::uint64_t gpa_ = 0;
    fabric::LocalBuffer into_;
    std::optional<Posted> posted_;
    Time begun_{};
  };
  class PageWrite {
    friend class Stores;
    void post(const Connected& connection, const fabric::WorkRequest& request) {
      posted_.emplace_back(connection, request).operation.post();
    }
    std::list<Posted> posted_;
    std::errc error_{};
    Time begun_{};
  };

 private:
  Task<bool> read_from_any(std::uint64_t gpa, fabric::LocalBuffer into);
  Task<Connected> connect(Store& store);
  Task<Connected> make_connection(Store& store);
  bool write_locally(std::uint64_t gpa, fabric::LocalBuffer from, PagesSent& sent);
  Task<bool> write_to(Store& store, std::uint64_t gpa, fabric::LocalBuffer from, PagesSent& sent,
                      PageWrite& write);
  static bool post_immediate(const Store& store, const Connected& connection, std::uint64_t gpa,
                             fabric::LocalBuffer from, PagesSent& sent, PageWrite& write);
  Task<bool> write_durably(StoreConnection& connection, std::uint64_t gpa,
                           fabric::LocalBuffer from);
  Task<bool> force(StoreConnection& connection, std::uint64_t page);
  Task<bool> read_from(Store& store, std::uint64_t gpa, fabric::LocalBuffer into);
  bool can_read(const Store& store, std::uint64_t gpa) const {
    return store.group == group_of(gpa) && contains(link_.members().members, store.number);
  }
  bool is_strong(std::uint32_t group) const;

  Thread& thread_;
  Parameters parameters_;
  MdsLink& link_;
  pmem::Region* local_;
  LocalRights::Right local_right_;
  std::uint64_t local_connection_ = 0;  // MdsLink::connection() for which it was given
  std::optional<std::uint32_t> own_group_;
  std::uint32_t own_store_ = 0;
  std::vector<std::unique_ptr<Store>> stores_;  // by number
  bool durable_ = false;                        // by `method_`
  methods::DurableWrite method_;
  std::size_t next_read_ = 0;
  std::uint64_t reads_ = 0;
  std::uint64_t writes_ = 0;
  Picoseconds in_reads_{};
  Picoseconds in_writes_{};
};

}  // namespace perdura::systems::orion
