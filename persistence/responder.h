// The responder's side of remote persistence: it lets requesters update a region by a method
// (persistence/remote_persister.h), does the responder's steps, and hands its receive
// buffers back when what they held is durable where it belongs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "persistence/handshake.h"
#include "persistence/message.h"
#include "persistence/message_ring.h"
#include "persistence/setup.h"
#include "platform/platform.h"
#include "rpc/sessions.h"

namespace perdura::persistence {

// Made by make_shared; lives on the thread that serves.
class Responder : public std::enable_shared_from_this<Responder> {
 public:
  // `target` is the thread's node's and stays. Receive buffers in persistent memory have a region
  // of their own, the target's name with ".messages". Recovers: when the constructor returns, the
  // target has all that requesters may rely on. Throws UsageError if the method cannot run here.
  Responder(Thread& thread, pmem::Region& target, const PersisterSetup& setup);
  ~Responder();

  // Accepts requesters and serves them; does not end by itself.
  Task<> serve();

  // Takes no more requesters, and asks those that are connected to let go when they have ended what
  // they are about: else the last update of one could be in doubt for as long as nobody serves it.
  void begin_end();
  // Whether one is connected still.
  bool has_requesters() const;

  // How many messages the constructor has replayed.
  std::uint64_t replayed() const { return replayed_; }
  std::uint64_t messages() const { return messages_; }  // taken since

 private:
  struct Session {
    std::uint32_t number = 0;
    std::unique_ptr<fabric::ReceiveQueue> receive_queue;
    std::unique_ptr<fabric::QueuePair> queue_pair;
    std::size_t step = 0;        // the "receive" that waits
    std::uint64_t received = 0;  // sequence number of the last message
    std::uint64_t posted = 0;    // of the last buffer that was posted
    std::uint64_t settled = 0;   // of the last message that is durable where it belongs
    bool is_free() const { return queue_pair == nullptr; }
  };
  // The updates that a message is about.
  struct Incoming {
    MessageHeader header;
    std::span<const std::byte> message;  // empty if it carries no data
  };

  void accept(fabric::ConnectionRequest& request);
  void handle(const fabric::ReceiveCompletion& completion);
  bool understand(const fabric::ReceiveCompletion& completion, Incoming& incoming) const;
  void do_steps(Session& session, const Incoming& incoming);
  void copy(const Incoming& incoming, std::size_t update);
  void apply_later(const Incoming& incoming);
  void acknowledge(Session& session);
  void send_count(Session& session, Bytes place, Acknowledgment count);
  Rejection::Reason rejection_of(const Hello& hello) const;
  void settle(Session& session);
  void post_buffers(Session& session);
  void disconnect(Session& session);
  bool is_replayed() const { return applied_later_ && ring_.is_persistent(); }

  Thread& thread_;
  pmem::Region& target_;
  PersisterSetup setup_;
  bool applied_later_;
  std::uint64_t settle_after_;  // messages
  MessageRing ring_;
  std::uint64_t replayed_ = 0;
  std::uint64_t messages_ = 0;
  fabric::MemoryRegion target_memory_;
  fabric::MemoryRegion buffer_memory_;
  std::unique_ptr<pmem::Region> acks_;
  fabric::MemoryRegion ack_memory_;
  std::uint32_t max_inline_;
  fabric::CompletionQueue completions_;
  rpc::SessionTable<Session> sessions_;
  bool ending_ = false;
};

}  // namespace perdura::persistence
