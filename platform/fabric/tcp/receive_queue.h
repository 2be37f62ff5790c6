// Posted receive buffers, which messages of all queue pairs that share the queue fill in the order
// in which they arrived.
#pragma once

#include <memory>

#include "platform/fabric/fabric.h"
#include "platform/runtime/ring.h"

namespace perdura::fabric::tcp {

struct PostedBuffer {
  LocalPieces pieces;
  std::uint64_t id = 0;
};

class TcpReceiveQueue final : public ReceiveQueue {
 public:
  explicit TcpReceiveQueue(std::uint32_t depth) : depth_(depth) {}
  std::uint32_t depth() const override { return depth_; }
  // Throws UsageError if depth() buffers are posted, std::out_of_range if a piece is not in its
  // region.
  void post(const LocalPieces& buffer, std::uint64_t buffer_id) override;

  // Outlives the queue for as long as queue pairs use it.
  using Posted = Ring<PostedBuffer>;
  const std::shared_ptr<Posted>& posted() const { return posted_; }

 private:
  std::uint32_t depth_;
  std::shared_ptr<Posted> posted_ = std::make_shared<Posted>();
};

}  // namespace perdura::fabric::tcp
