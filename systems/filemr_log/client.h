// The client's side of the log of FileMR: appends records by APPEND, one-sided.
#pragma once

#include <memory>
#include <tl/expected.hpp>

#include "platform/platform.h"
#include "services/log/log.h"
#include "systems/filemr_log/log_format.h"

namespace perdura::systems::filemr_log {

class LogClient {
 public:
  // Connects to the log's server. Throws UsageError if it has other options, methods::RefusedForNow
  // while it has another client, or another PlatformError.
  static Task<std::unique_ptr<LogClient>> connect(Thread& thread, fabric::Address server,
                                                  const Options& options);
  ~LogClient();

  // Appends a record and returns its number, once it is as durable as the options say. While the
  // log is full, waits until the server has applied records.
  Task<tl::expected<std::uint64_t, services::LogError>> append(std::span<const std::byte> payload);
  // The number of records.
  std::uint64_t tail() const { return tail_.number; }

 private:
  LogClient(Thread& thread, const Options& options);
  Task<> open(fabric::Address server);
  Task<bool> flush();
  Task<bool> ask_to_persist(Bytes from, Bytes to);

  Thread& thread_;
  const Options options_;
  Position tail_;
  fabric::RemoteKey file_;
  fabric::RemoteKey size_;
  std::unique_ptr<pmem::Region> memory_;  // a record, a message, its answer
  fabric::MemoryRegion registered_;
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::ReceiveQueue> receive_queue_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
};

}  // namespace perdura::systems::filemr_log
