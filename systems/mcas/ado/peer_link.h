// The connection by which a process of active data objects is a client of another shard (MCAS,
// section 2: the processes "may act as clients to other MCAS nodes", back-flow).
//
// The process is isolated and has no endpoint of the fabric, since with an endpoint it could reach
// more than one shard (platform/child_process.h). Instead its shard connects to the one address
// that it is configured for, and forwards messages in both directions without reading them, as a
// network card would. The session at the peer belongs to the process.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "platform/platform.h"
#include "rpc/receive_buffers.h"

namespace perdura::systems::mcas::ado {

struct PeerOptions {
  fabric::Address address;
  Bytes longest_message = 0;       // the limit holds in both directions
  Picoseconds connect_patience{};  // 0: the platform's default
};

// Must be created by make_shared, and used on the shard's thread only.
class PeerLink : public std::enable_shared_from_this<PeerLink> {
 public:
  // Throws PlatformError if the device cannot register its buffers.
  PeerLink(Thread& thread, const PeerOptions& options);
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;
  ~PeerLink();

  // Connects with the private data `hello`, and returns that of the peer's answer; nothing if the
  // peer cannot be reached or refuses. Must be called once, before all other functions.
  Task<std::optional<std::string>> connect(std::string hello);
  // Returns false if the connection has ended. The message must have at least one byte and at most
  // `longest_message`.
  Task<bool> send(std::string message);
  // Returns the next message, or nothing if the connection has ended.
  Task<std::optional<std::string>> receive();
  // Ends all waiting calls. The connection itself ends with the last reference to the link.
  void close();

 private:
  // Messages that may have arrived and not been taken yet. A client that makes one request after
  // the other needs one; the others are for answers that arrive after it has given up waiting.
  static constexpr std::uint32_t kReceives = 4;

  fabric::Endpoint& endpoint_;
  PeerOptions options_;
  std::unique_ptr<pmem::Region> buffers_;
  fabric::MemoryRegion memory_;
  rpc::BufferRow rows_;  // kReceives buffers to receive, followed by one to send
  Semaphore sending_{1};
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::ReceiveQueue> received_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
};

}  // namespace perdura::systems::mcas::ado
