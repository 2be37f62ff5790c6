// The server's side of the log of FileMR: what a library does that owns raw persistent memory and
// gives it to a file which grows under APPENDs ("FileMR: Rethinking RDMA Networking for Scalable
// Persistent Memory", section "Remote NVMM Log with libpmemlog").
//
// Its CPU takes no part in an APPEND, unless the file has no memory left there: then the client's
// device waits, and the server learns of the range fault.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "rpc/receive_buffers.h"
#include "systems/filemr_log/log_format.h"

namespace perdura::systems::filemr_log {

// Must be created by make_shared. Belongs to the thread that serves.
class LogServer : public std::enable_shared_from_this<LogServer> {
 public:
  // Called for each record in order. Its effects must be durable when it returns.
  using Apply = std::function<void(std::uint64_t number, std::span<const std::byte> payload)>;

  // Opens and recovers the log in the persistent region `name` of the thread's node, or makes it.
  // Throws UsageError if the region is another log or none.
  LogServer(Thread& thread, const std::string& name, const Options& options, Apply apply);
  ~LogServer();

  // Accepts a client and serves it, then the next one; applies records as they arrive, looking for
  // them at least this often; does not return.
  Task<> serve(Picoseconds look);

  // Applies every record that has arrived.
  Task<> apply_all() { return apply_until(region_->load(kSizeOffset)); }
  // The number of records that have been applied.
  std::uint64_t applied() const { return head_.number; }
  // How often an APPEND has waited for memory.
  std::uint64_t range_faults() const { return range_faults_; }

 private:
  void make();
  void check_shape(const std::string& name) const;
  Position head_in_memory() const;
  void store_head();
  void recover();
  std::optional<std::vector<std::byte>> record_at(const Position& before) const;

  void accept(fabric::ConnectionRequest& request);
  Task<> answer_messages();
  Task<> answer_range_faults();
  void persist(const PersistRequest& request);
  bool apply_next(Bytes size);
  Task<> reuse_room();
  Task<> apply_until(Bytes end);

  // Calls visit(offset in the region, length) for the parts of the room that hold a range of the
  // file.
  template <class Visit>
  void for_each_part(Bytes from, Bytes to, Visit visit) const;

  Thread& thread_;
  const Options options_;
  Apply apply_;
  std::unique_ptr<pmem::Region> region_;
  Position head_;     // after the records that have been applied
  Bytes mapped_ = 0;  // the file is mapped from here to `mapped_` + room
  bool reusing_ = false;
  std::uint64_t heads_ = 0;  // stored so far
  std::uint64_t range_faults_ = 0;

  fabric::RangeFaults faults_;
  fabric::ExtentMap file_;
  fabric::MemoryRegion size_;
  std::unique_ptr<pmem::Region> messages_;
  fabric::MemoryRegion message_memory_;
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::ReceiveQueue> receive_queue_;
  std::unique_ptr<fabric::QueuePair> client_;
};

}  // namespace perdura::systems::filemr_log
