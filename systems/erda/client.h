// Erda's client (Liu et al., sections 3.3, 4.2 and 4.3).
#pragma once

#include <memory>
#include <vector>

#include "platform/fabric/fabric.h"
#include "systems/erda/layout.h"
#include "systems/erda/protocol.h"
#include "systems/kv.h"

namespace perdura::systems::erda {

class ErdaSession final : public KvSession {
 public:
  static Task<std::unique_ptr<KvSession>> connect(Thread& thread, fabric::Address server,
                                                  KvConfig config);

  Task<Result<Bytes>> get(Key key, std::span<std::byte> into) override;
  Task<Result<void>> put(Key key, Value value) override;
  Task<Result<void>> erase(Key key) override;
  SessionCounts counts() const override { return counts_; }

 private:
  // One operation under way: its buffers and the answer that it waits for.
  struct Lane {
    std::uint32_t id = 0;
    bool busy = false;
    bool answered = false;
    Reply reply;
    WaitList waiting;
  };
  class LaneGuard;

  // What the connection leaves behind in the executor outlives the session, so it is shared.
  struct Connection {
    std::unique_ptr<pmem::Region> memory;
    fabric::MemoryRegion registered;
    std::unique_ptr<fabric::ReceiveQueue> receive_queue;
    fabric::CompletionQueue completions;
    std::vector<Lane> lanes = std::vector<Lane>(kLanes);
    bool open = true;
  };
  static Task<> take_replies(std::shared_ptr<Connection> connection);

  ErdaSession(Thread& thread, const KvConfig& config);
  Task<> open(fabric::Address server);

  Task<Result<void>> write_object(RequestKind kind, Key key, std::optional<Value> value);
  Task<Result<Reply>> ask(Lane& lane, RequestHeader request, hopscotch::StoredKey key);
  Task<Result<hopscotch::Found>> find_entry(Lane& lane, hopscotch::StoredKey key);
  Task<Result<ObjectFormat::Object>> read_version(Lane& lane, std::uint8_t head, Position position);
  Task<Result<Bytes>> place_of(Lane& lane, std::uint8_t head, Position position);
  Task<> report_incomplete(Lane& lane, hopscotch::StoredKey key, std::uint64_t word);
  Task<bool> no_entry_moved(Lane& lane);

  // A lane's memory: the request, the entry's neighborhood, and an object.
  fabric::LocalBuffer request_buffer(const Lane& lane, std::uint32_t length) const;
  fabric::LocalBuffer entry_buffer(const Lane& lane, std::uint32_t length) const;
  fabric::LocalBuffer object_buffer(const Lane& lane, Bytes length) const;
  Bytes lane_size() const { return request_size_ + entry_size_ + object_size_; }
  static void fill_request(const fabric::LocalBuffer& buffer, const RequestHeader& request,
                           const hopscotch::StoredKey& key);

  Thread& thread_;
  std::unique_ptr<PoolLayout> layout_;
  ObjectFormat format_;
  Bytes request_size_ = 0;
  Bytes entry_size_ = 0;
  Bytes object_size_ = 0;
  Welcome welcome_;
  std::shared_ptr<Connection> connection_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
  Semaphore free_lanes_{kLanes};
  std::vector<std::uint64_t> head_array_;  // cached (section 3.3)
  std::uint64_t displacements_ = 0;        // cached
  SessionCounts counts_;
};

}  // namespace perdura::systems::erda
