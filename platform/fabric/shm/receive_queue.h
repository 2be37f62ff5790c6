// A receive queue: a ring of posted buffers in the endpoint's segment, filled by the owner and
// emptied by the senders of all connections that use it, without locks.
//
// A sender claims the buffer with the lowest ticket by a compare-and-swap that writes its owner
// number beside the ticket, copies the message into the buffer and reports it in its connection's
// ring. If a sender dies after claiming a buffer and before reporting it, recover() posts the
// buffer again.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "platform/fabric/fabric.h"
#include "platform/fabric/shm/layout.h"
#include "platform/fabric/shm/node_memory.h"
#include "platform/fabric/shm/segment.h"

namespace perdura::fabric::shm {

// Outlives the ReceiveQueue for as long as peers may still use its buffers.
class ReceiveQueueState {
 public:
  ReceiveQueueState(OwnSegment& segment, NodeMemory& memory, std::uint32_t depth);
  ~ReceiveQueueState();
  ReceiveQueueState(const ReceiveQueueState&) = delete;
  ReceiveQueueState& operator=(const ReceiveQueueState&) = delete;

  std::uint64_t offset() const { return offset_; }
  std::uint64_t slots() const { return local_.size(); }
  std::uint32_t depth() const { return depth_; }

  void post(const LocalPieces& buffer, std::uint64_t id);

  struct Consumed {
    LocalPieces buffer;
    std::uint64_t id;
  };
  // The buffer of a ticket that a sender reported; nullopt if the ticket is invalid.
  std::optional<Consumed> consume(std::uint64_t ticket);

  // Posts the buffers again that this owner claimed and did not report; the owner must have ended
  // for good. Does nothing once the queue itself has been destroyed, since the buffers' memory may
  // be gone, too.
  void recover(std::uint64_t owner);
  void abandon() { abandoned_ = true; }

 private:
  struct Posted {
    std::uint64_t ticket = 0;  // 0: consumed
    LocalPieces buffer;
    std::uint64_t id = 0;
    std::array<std::uint32_t, kMaxPieces> keys{};  // the keys of the pieces' regions, for senders
  };
  struct Straggler {
    Posted posted;
    std::uint64_t owner;
  };

  PostedBuffer& shared(std::uint64_t ticket) const {
    return buffers_[ticket & (local_.size() - 1)];
  }
  std::uint32_t key_of(const LocalBuffer& piece);
  void enqueue(Posted posted);

  OwnSegment& segment_;
  NodeMemory& memory_;
  std::uint32_t depth_;
  std::uint32_t outstanding_ = 0;
  std::uint64_t offset_;
  PostedBuffer* buffers_;
  std::vector<Posted> local_;          // beside each shared slot
  std::vector<Straggler> stragglers_;  // claimed but not reported, with their slot in use again
  std::uint64_t next_ticket_ = 1;
  bool abandoned_ = false;

  pmem::Region* last_region_ = nullptr;
  std::uint32_t last_key_ = 0;
};

class ShmReceiveQueue final : public ReceiveQueue {
 public:
  explicit ShmReceiveQueue(std::shared_ptr<ReceiveQueueState> state) : state_(std::move(state)) {}
  ~ShmReceiveQueue() override { state_->abandon(); }
  std::uint32_t depth() const override { return state_->depth(); }
  void post(const LocalPieces& buffer, std::uint64_t buffer_id) override {
    state_->post(buffer, buffer_id);
  }
  const std::shared_ptr<ReceiveQueueState>& state() const { return state_; }

 private:
  std::shared_ptr<ReceiveQueueState> state_;
};

// The senders' side, one for each connection.
class BufferClaims {
 public:
  BufferClaims() = default;
  BufferClaims(ReceiveQueueHeader* queue, std::uint64_t slots, std::uint64_t owner)
      : queue_(queue), slots_(slots), owner_(owner) {}

  struct Piece {
    std::uint32_t key = 0;
    std::uint32_t length = 0;
    Bytes offset = 0;
  };
  struct Claim {
    std::uint64_t ticket = 0;
    std::uint64_t pieces_used = 0;
    std::array<Piece, kMaxPieces> pieces{};
    std::span<const Piece> all() const { return {pieces.data(), pieces_used}; }
    Bytes length() const {
      Bytes sum = 0;
      for (const Piece& piece : all()) sum += piece.length;
      return sum;
    }
  };
  // Claims the next buffer; returns nullopt if no buffer is posted.
  std::optional<Claim> claim();
  // The first piece of the buffer that follows the last claimed one: a hint, since the buffer may
  // not have been posted yet. Returns nullopt if other senders claim buffers, too, since it may be
  // theirs.
  std::optional<Piece> upcoming() const;

 private:
  ReceiveQueueHeader* queue_ = nullptr;
  std::uint64_t slots_ = 0;
  std::uint64_t owner_ = 0;
  std::uint64_t next_ = 1;
  bool is_alone_ = true;  // no other sender has claimed a buffer before the last one
};

}  // namespace perdura::fabric::shm
