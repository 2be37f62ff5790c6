// The part of a client that the two baselines share: concurrent operations, requests and their
// replies, get and delete.
//
// Every operation in flight has a call (rpc/calls.h), with scratch memory for its request and its
// record, and an id by which its reply is recognized. A reply is read in the receive buffer in
// which it arrived.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "platform/platform.h"
#include "rpc/calls.h"
#include "rpc/receive_buffers.h"
#include "services/kv/kv.h"
#include "systems/write_ahead/messages.h"
#include "systems/write_ahead/pool.h"
#include "systems/write_ahead/record.h"

namespace perdura::systems::write_ahead {

class Client : public kv::KvSession {
 public:
  Task<kv::Result<Bytes>> get(kv::Key key, std::span<std::byte> into) final;
  Task<kv::Result<void>> erase(kv::Key key) final;
  kv::SessionCounts counts() const final { return counts_; }

 protected:
  Client(Thread& thread, const Parameters& parameters)
      : thread_(thread), queue_depth_(static_cast<std::uint32_t>(parameters.queue_depth)) {}

  // Throws PlatformError if the server refuses or cannot be reached.
  Task<> connect_requests(fabric::Address server);
  Task<> connect_log(fabric::Address server);

  // The call of an operation in flight, with the reply that the operation has kept.
  class Lease {
   public:
    Lease(rpc::Calls<Reply>::Lease call, rpc::KeptReplies& replies)
        : call_(std::move(call)), reply_(replies, call_.call()) {}
    rpc::Call call() const { return call_.call(); }

   private:
    rpc::Calls<Reply>::Lease call_;
    rpc::KeptReplies::Use reply_;  // destroyed before call_, so that the call is freed last
  };
  Task<Lease> lease();

  // A permit for one SEND to the log. log_turn() waits while as many SENDs are in flight as the
  // server allows.
  class LogTurn {
   public:
    explicit LogTurn(Client& client) : client_(&client) {}
    LogTurn(LogTurn&& other) noexcept : client_(std::exchange(other.client_, nullptr)) {}
    LogTurn& operator=(LogTurn&&) = delete;
    ~LogTurn() {
      if (client_ != nullptr) client_->end_log_turn();
    }

   private:
    Client* client_;
  };
  Task<LogTurn> log_turn();

  // SENDs a request and waits for the reply. Returns nullopt if the connection broke.
  Task<std::optional<Reply>> request(rpc::Call call, RequestKind kind, kv::Key key,
                                     std::uint32_t value_length);
  // SENDs a sealed record to the server's log and waits for the reply.
  Task<std::optional<Reply>> send_to_log(rpc::Call call, fabric::LocalBuffer record);

  // Called when the server is gone or violates the protocol: ends every operation in flight.
  void fail();

  bool too_large(kv::Key key, kv::Value value) const {
    return key.size() > welcome_.max_key_size || value.size() > welcome_.max_value_size;
  }
  // Writes the record of a put, without its checksum, into the call's scratch memory.
  fabric::LocalBuffer write_record(rpc::Call call, kv::Key key, kv::Value value);
  void seal(const fabric::LocalBuffer& record, kv::Key key, kv::Value value,
            std::uint64_t position);

  fabric::LocalBuffer request_buffer(rpc::Call call) const;

  Thread& thread_;
  std::uint32_t queue_depth_;
  Welcome welcome_;
  RecordFormat format_{0, 0};
  std::uint64_t log_tail_ = 0;  // the last one that the server reported
  kv::SessionCounts counts_;

 private:
  Task<fabric::Connection> connect(fabric::Address server, const Hello& hello);
  Task<std::optional<Reply>> reply_to(rpc::Call call);
  void take(const fabric::ReceiveCompletion& completion);
  void end_log_turn();
  void allocate();

  fabric::LocalBuffer record_buffer(rpc::Call call) const;

  Bytes request_room_ = 0;
  Bytes record_room_ = 0;
  Bytes reply_room_ = 0;
  std::unique_ptr<pmem::Region> buffers_;
  fabric::MemoryRegion buffer_memory_;
  rpc::Calls<Reply> calls_;
  rpc::KeptReplies kept_;
  std::uint32_t log_turns_ = 0;  // permits in use
  WaitList waiting_for_turn_;
  rpc::InOrder log_sends_;  // calls whose SENDs are not yet answered

 protected:
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::ReceiveQueue> replies_;
  std::unique_ptr<fabric::QueuePair> requests_;
  std::unique_ptr<fabric::QueuePair> log_;
};

}  // namespace perdura::systems::write_ahead
