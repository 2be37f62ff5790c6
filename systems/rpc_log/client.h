// The client's side of the log by RPC.
#pragma once

#include <memory>
#include <tl/expected.hpp>

#include "platform/platform.h"
#include "services/log/log.h"
#include "systems/rpc_log/messages.h"

namespace perdura::systems::rpc_log {

class LogClient {
 public:
  // Connects to the log's server. Throws UsageError if it has other options, methods::RefusedForNow
  // while it has another client, or another PlatformError.
  static Task<std::unique_ptr<LogClient>> connect(Thread& thread, fabric::Address server,
                                                  const Options& options);
  ~LogClient();

  // Appends a record and returns its number, once it is durable.
  Task<tl::expected<std::uint64_t, services::LogError>> append(std::span<const std::byte> payload);
  std::uint64_t tail() const { return tail_; }

 private:
  LogClient(Thread& thread, const Options& options);
  Task<> open(fabric::Address server);

  Thread& thread_;
  const Options options_;
  std::uint64_t tail_ = 0;
  fabric::RemoteKey requests_;
  std::unique_ptr<pmem::Region> memory_;  // an answer, and a request
  fabric::MemoryRegion registered_;
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::ReceiveQueue> receive_queue_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
};

}  // namespace perdura::systems::rpc_log
