// A receive queue: a shared receive queue of the device, whether one queue pair uses it or many.
// Buffers that a connection has not used when it ends remain available to the other connections.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "platform/fabric/fabric.h"
#include "platform/fabric/verbs/device.h"

namespace perdura::fabric::verbs {

class VerbsEndpoint;

// Stays for as long as queue pairs use it.
class ReceiveQueueState {
 public:
  ReceiveQueueState(VerbsEndpoint& endpoint, std::uint32_t depth);
  ~ReceiveQueueState();
  ReceiveQueueState(const ReceiveQueueState&) = delete;
  ReceiveQueueState& operator=(const ReceiveQueueState&) = delete;

  ibv_srq* get() const { return queue_.get(); }
  std::uint32_t depth() const { return depth_; }
  void post(const LocalPieces& buffer, std::uint64_t id);

  struct Posted {
    LocalPieces buffer{};
    std::uint64_t id = 0;
    std::vector<std::byte> before{};  // the contents of persistent memory, for accounting
  };
  // Called when the device is done with a slot: its buffer belongs to the user again, or goes back
  // into the queue.
  Posted take(std::uint32_t slot);
  void repost(std::uint32_t slot);
  void abandon() { abandoned_ = true; }

 private:
  void hand_over(std::uint32_t slot);

  VerbsEndpoint& endpoint_;
  std::uint32_t depth_;
  std::uint32_t index_;
  std::vector<Posted> posted_;
  std::vector<std::uint32_t> free_;
  bool abandoned_ = false;  // the user's object is gone, and the buffers perhaps with it
  Handle<ibv_srq> queue_;
};

class VerbsReceiveQueue final : public ReceiveQueue {
 public:
  explicit VerbsReceiveQueue(std::shared_ptr<ReceiveQueueState> state) : state_(std::move(state)) {}
  ~VerbsReceiveQueue() override { state_->abandon(); }
  std::uint32_t depth() const override { return state_->depth(); }
  void post(const LocalPieces& buffer, std::uint64_t buffer_id) override {
    state_->post(buffer, buffer_id);
  }
  const std::shared_ptr<ReceiveQueueState>& state() const { return state_; }

 private:
  std::shared_ptr<ReceiveQueueState> state_;
};

}  // namespace perdura::fabric::verbs
