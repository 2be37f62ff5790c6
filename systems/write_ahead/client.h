// The client of a partition as far as the two baselines share it: operations under way at once,
// requests and their replies, get and delete.
//
// An operation under way owns a slot: scratch memory for its request and its record, and the id by
// which its reply is known. Replies land in any of the reply buffers; whichever operation waits
// takes the next completion and hands it to the one that it is for.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "platform/platform.h"
#include "systems/kv.h"
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

  // The slot of an operation under way.
  class Lease {
   public:
    Lease(Client& client, std::uint32_t slot) : client_(&client), slot_(slot) {}
    Lease(Lease&& other) noexcept
        : client_(std::exchange(other.client_, nullptr)), slot_(other.slot_) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (client_ != nullptr) client_->give_back(slot_);
    }
    std::uint32_t slot() const { return slot_; }

   private:
    Client* client_;
    std::uint32_t slot_;
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
  Task<std::optional<Reply>> request(std::uint32_t slot, RequestKind kind, Key key,
                                     std::uint32_t value_length);
  // SENDs a sealed record to the server's log and waits for the reply.
  Task<std::optional<Reply>> send_to_log(std::uint32_t slot, fabric::LocalBuffer record);

  // The store is gone, or does not answer as it should: every operation under way ends.
  void fail();

  bool too_large(Key key, Value value) const {
    return key.size() > welcome_.max_key_size || value.size() > welcome_.max_value_size;
  }
  // Writes the record of a put, without its checksum, into the slot's scratch memory.
  fabric::LocalBuffer write_record(std::uint32_t slot, Key key, Value value);
  void seal(const fabric::LocalBuffer& record, Key key, Value value, std::uint64_t position);

  fabric::LocalBuffer request_buffer(std::uint32_t slot) const;

  Thread& thread_;
  std::uint32_t queue_depth_;
  Welcome welcome_;
  RecordFormat format_{0, 0};
  std::uint64_t log_tail_ = 0;  // as far as the server has told
  bool broken_ = false;
  SessionCounts counts_;

 private:
  struct Slot {
    bool answered = false;
    bool expects_reply = false;  // a reply buffer is posted for it, or it has one
    bool has_buffer = false;
    Reply reply;
    std::uint64_t buffer = 0;  // in which the reply came, until it is posted again
    WaitList waiting;
  };

  Task<std::optional<Reply>> reply_for(std::uint32_t slot);
  void deliver(const fabric::ReceiveCompletion& completion);
  void repost(Slot& slot);
  void post_reply_buffer(std::uint64_t buffer);
  void give_back(std::uint32_t slot);
  void end_log_turn();
  void allocate();

  fabric::LocalBuffer record_buffer(std::uint32_t slot) const;
  fabric::LocalBuffer reply_buffer(std::uint64_t index) const;

  Bytes request_room_ = 0;
  Bytes record_room_ = 0;
  Bytes reply_room_ = 0;
  std::unique_ptr<pmem::Region> buffers_;
  fabric::MemoryRegion buffer_memory_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::uint64_t> free_reply_buffers_;
  WaitList waiting_for_slot_;
  std::uint32_t log_turns_ = 0;  // taken
  WaitList waiting_for_turn_;
  std::deque<std::uint32_t> log_sends_;  // slots in the order of SENDs to the log not yet answered
  bool receiving_ = false;

 protected:
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::ReceiveQueue> replies_;
  std::unique_ptr<fabric::QueuePair> requests_;
  std::unique_ptr<fabric::QueuePair> log_;
};

}  // namespace perdura::systems::write_ahead
