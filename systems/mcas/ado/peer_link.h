// The connection by which a process of active data objects is a client of another shard (MCAS,
// section 2: the processes "may act as clients to other MCAS nodes", back-flow).
//
// The process is isolated and has no endpoint of the fabric, by which it could reach more than one
// shard (platform/child_process.h). So its shard connects to the one address that it is configured
// for, sends there what the process gives it and hands over what comes, as a network card would: it
// reads nothing of it. The session at the peer is the process' own.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "platform/platform.h"
#include "rpc/receive_buffers.h"

namespace perdura::systems::mcas::ado {

struct PeerOptions {
  fabric::Address address;
  Bytes longest_message = 0;       // in either direction
  Picoseconds connect_patience{};  // 0: as long as the platform usually waits
};

// Must be created by make_shared. Belongs to the shard's thread.
class PeerLink : public std::enable_shared_from_this<PeerLink> {
 public:
  // Throws PlatformError if the device cannot register its buffers.
  PeerLink(Thread& thread, const PeerOptions& options);
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;
  ~PeerLink();

  // What the peer has answered to this in the connection's private data; nothing if it is not
  // reached or refuses. To be called first, once.
  Task<std::optional<std::string>> connect(std::string hello);
  // False if the connection has ended. The message has at least one byte, and is no longer than the
  // longest.
  Task<bool> send(std::string message);
  // The next message; nothing if the connection has ended.
  Task<std::optional<std::string>> receive();
  // Ends what waits. The connection ends when nobody has the link any more.
  void close();

 private:
  // Messages that may have come and not been taken. A client that asks one thing after the other
  // has one; the others are for answers that come when it has given up waiting.
  static constexpr std::uint32_t kReceives = 4;

  fabric::Endpoint& endpoint_;
  PeerOptions options_;
  std::unique_ptr<pmem::Region> buffers_;
  fabric::MemoryRegion memory_;
  rpc::BufferRow rows_;  // to receive, and behind them one to send
  Semaphore sending_{1};
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::ReceiveQueue> received_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
};

}  // namespace perdura::systems::mcas::ado
