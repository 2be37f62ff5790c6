// The server's side of the log by RPC: its CPU takes each request, appends the record to its log
// (local_log.h), and answers when it is durable.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "systems/rpc_log/messages.h"

namespace perdura::systems::rpc_log {

// Must be created by make_shared. Belongs to the thread that serves.
class LogServer : public std::enable_shared_from_this<LogServer> {
 public:
  // Opens and recovers the log in the persistent region `name` of the thread's node, or makes it.
  // Throws UsageError if the region is another log or none.
  LogServer(Thread& thread, const std::string& name, const Options& options, LocalLog::Apply apply);
  ~LogServer();

  // Accepts a client and serves it, then the next one; applies records, looking for them at least
  // this often; does not return.
  Task<> serve(Picoseconds look);

  Task<> apply_all() {
    log_.apply_some(~std::uint64_t{0}, apply_);
    co_return;
  }
  // The number of records that have been applied.
  std::uint64_t applied() const { return log_.head(); }

 private:
  void accept(fabric::ConnectionRequest& request);
  Task<> take_messages();
  Task<> poll_requests();
  void take(std::span<const std::byte> request);

  Thread& thread_;
  const Options options_;
  LocalLog::Apply apply_;
  LocalLog log_;
  std::unique_ptr<pmem::Region> memory_;  // the answer, and buffers for requests
  fabric::MemoryRegion registered_;
  fabric::MemoryRegion polled_;
  std::vector<std::byte> request_;  // a copy of one that was WRITTEN
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::ReceiveQueue> receive_queue_;
  std::unique_ptr<fabric::QueuePair> client_;
};

}  // namespace perdura::systems::rpc_log
