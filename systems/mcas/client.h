// The client's session with a shard. Each operation is one request and its reply, which is read in
// the receive buffer in which it arrived.
#pragma once

#include <memory>
#include <optional>

#include "platform/platform.h"
#include "rpc/calls.h"
#include "rpc/receive_buffers.h"
#include "services/kv/kv.h"
#include "systems/mcas/messages.h"

namespace perdura::systems::mcas {

class Client final : public KvSession {
 public:
  static Task<std::unique_ptr<KvSession>> connect(Thread& thread, fabric::Address server,
                                                  KvConfig config);

  Task<Result<Bytes>> get(Key key, std::span<std::byte> into) override;
  Task<Result<void>> put(Key key, Value value) override;
  Task<Result<void>> erase(Key key) override;
  SessionCounts counts() const override { return {}; }

 private:
  Client(Thread& thread, std::uint32_t queue_depth) : thread_(thread), queue_depth_(queue_depth) {}

  Task<> connect(fabric::Address server);
  void allocate();

  // Sends a request and waits for the reply, which `kept_` keeps for the call.
  Task<Result<Reply>> request(rpc::Call call, RequestKind kind, Key key, Value value);
  Task<Result<void>> change(RequestKind kind, Key key, Value value);
  void take(const fabric::ReceiveCompletion& completion);
  // The shard is gone, or violates the protocol: ends all operations in flight.
  void fail();

  Thread& thread_;
  std::uint32_t queue_depth_;
  Welcome welcome_;
  std::unique_ptr<pmem::Region> buffers_;
  rpc::BufferRow requests_;
  rpc::Calls<Reply> calls_;
  rpc::KeptReplies kept_;
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::ReceiveQueue> replies_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
};

}  // namespace perdura::systems::mcas
