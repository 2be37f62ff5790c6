// The client of a partition as far as the two baselines share it: operations under way at once,
// requests and their replies, get and delete.
//
// An operation under way has a call (rpc/calls.h): scratch memory for its request and its record,
// and the id by which its reply is known. A reply is read in the buffer in which it landed.
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

class Client : public KvSession {
 public:
  Task<Result<Bytes>> get(Key key, std::span<std::byte> into) final;
  Task<Result<void>> erase(Key key) final;
  SessionCounts counts() const final { return counts_; }

 protected:
  Client(Thread& thread, const Parameters& parameters)
      : thread_(thread), queue_depth_(static_cast<std::uint32_t>(parameters.queue_depth)) {}

  // Throws PlatformError if the server refuses or cannot be reached.
  Task<> connect_requests(fabric::Address server);
  Task<> connect_log(fabric::Address server);

  // The call of an operation under way, with the reply that it keeps.
  class Lease {
   public:
    Lease(rpc::Calls<Reply>::Lease call, rpc::KeptReplies& replies)
        : call_(std::move(call)), reply_(replies, call_.call()) {}
    rpc::Call call() const { return call_.call(); }

   private:
    rpc::Calls<Reply>::Lease call_;
    rpc::KeptReplies::Use reply_;  // ends before the call is free
  };
  Task<Lease> lease();

  // The right to have a SEND to the log under way.
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

  // SENDs a request and waits for the reply. Nothing if the connection broke.
  Task<std::optional<Reply>> request(rpc::Call call, RequestKind kind, Key key,
                                     std::uint32_t value_length);
  // SENDs a sealed record to the server's log and waits for the reply.
  Task<std::optional<Reply>> send_to_log(rpc::Call call, fabric::LocalBuffer record);

  // The store is gone, or does not answer as it should: every operation under way ends.
  void fail();

  bool too_large(Key key, Value value) const {
    return key.size() > welcome_.max_key_size || value.size() > welcome_.max_value_size;
  }
  // Writes the record of a put, without its checksum, into the call's scratch memory.
  fabric::LocalBuffer write_record(rpc::Call call, Key key, Value value);
  void seal(const fabric::LocalBuffer& record, Key key, Value value, std::uint64_t position);

  fabric::LocalBuffer request_buffer(rpc::Call call) const;

  Thread& thread_;
  std::uint32_t queue_depth_;
  Welcome welcome_;
  RecordFormat format_{0, 0};
  std::uint64_t log_tail_ = 0;  // as far as the server has told
  SessionCounts counts_;

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
  std::uint32_t log_turns_ = 0;  // taken
  WaitList waiting_for_turn_;
  rpc::InOrder log_sends_;  // not yet answered

 protected:
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::ReceiveQueue> replies_;
  std::unique_ptr<fabric::QueuePair> requests_;
  std::unique_ptr<fabric::QueuePair> log_;
};

}  // namespace perdura::systems::write_ahead
