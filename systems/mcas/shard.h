// A shard: one thread that serves one network end-point and is the only one that uses its pool, so
// nothing is locked (MCAS, section 3). It executes requests one after the other, each of them
// whole: it answers a change when that is durable, and reads nothing that is not durable.
//
// Each session has a reply buffer for each of its `queue_depth` requests in flight, and one request
// buffer more, since a request stays in its buffer while it is executed. The reply to the request
// with the id n is written to reply buffer n, which is free: the client has read the last reply
// that was sent from there before it uses the id again.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "rpc/receive_buffers.h"
#include "rpc/sessions.h"
#include "services/kv/kv.h"
#include "systems/mcas/messages.h"
#include "systems/mcas/pool.h"

namespace perdura::systems::mcas {

inline constexpr std::array kEvents{services::Event{"added segments"},
                                    services::Event{"displaced items"},
                                    services::Event{"added pool regions"},
                                    services::Event{"returned heap regions"},
                                    services::Event{"undone region changes", true},
                                    services::Event{"cleared hops", true},
                                    services::Event{"freed entries", true}};

inline constexpr std::array kPartitionMetrics{
    services::Metric{"added_segments", "segments added to the table", "Segments added"},
    services::Metric{"displaced_items", "items moved to make room", "Items displaced"},
    services::Metric{"returned_heap_regions", "heap regions returned", "Heap regions returned"}};

class Shard : public std::enable_shared_from_this<Shard> {
 public:
  // Creates its pool, or opens and recovers it. Throws UsageError if it is damaged or has another
  // shape.
  Shard(Thread& thread, const std::string& name, const KvConfig& config,
        const Parameters& parameters);

  // Runs until it is destroyed.
  Task<> serve();

  KvSpace space() const;
  std::vector<std::uint64_t> events() const;
  std::vector<double> metrics() const;
  std::string audit() const { return pool_.audit(); }

 private:
  struct Session {
    std::uint32_t number = 0;
    std::unique_ptr<fabric::ReceiveQueue> requests;
    std::unique_ptr<fabric::QueuePair> queue_pair;
    bool is_free() const { return queue_pair == nullptr; }
  };

  void accept(fabric::ConnectionRequest& request);
  Task<> handle(fabric::ReceiveCompletion completion);
  Task<> execute(Session& session, std::span<const std::byte> message);
  Task<ReplyStatus> put(Key key, Value value);
  // Copies the value to the reply.
  void get(Key key, std::span<std::byte> into, Reply& reply);
  void note_space();

  std::uint32_t request_buffers() const { return queue_depth_ + 1; }
  fabric::LocalBuffer request_buffer(const Session& session, std::uint64_t index) const {
    return requests_[std::uint64_t{session.number} * request_buffers() + index];
  }
  fabric::LocalBuffer reply_buffer(const Session& session, std::uint32_t id) const {
    return replies_[std::uint64_t{session.number} * queue_depth_ + id];
  }

  Thread& thread_;
  Pool pool_;
  Engine& engine_;
  std::uint32_t queue_depth_;
  Bytes max_key_size_;
  Bytes max_value_size_;
  std::unique_ptr<pmem::Region> buffers_;
  rpc::BufferRow requests_;
  rpc::BufferRow replies_;
  std::uint32_t max_inline_;
  fabric::CompletionQueue completions_;
  rpc::SessionTable<Session> sessions_;
  // What space() says, for other threads.
  Bytes capacity_;
  std::atomic<Bytes> free_{0};
  std::atomic<std::uint64_t> growth_steps_{0};
  std::atomic<bool> growing_{false};
};

// The partition that the harness holds. The task that accepts connections shares ownership of the
// shard, which lives as long as any of them.
class Partition final : public KvPartition {
 public:
  explicit Partition(std::shared_ptr<Shard> shard) : shard_(std::move(shard)) {}
  KvSpace space() const override { return shard_->space(); }
  std::vector<double> metrics() const override { return shard_->metrics(); }
  std::vector<std::uint64_t> events() const override { return shard_->events(); }
  std::string audit() override { return shard_->audit(); }
  Task<> serve() override { return shard_->serve(); }
  Task<> settle() override { co_return; }  // nothing is deferred

 private:
  std::shared_ptr<Shard> shard_;
};

}  // namespace perdura::systems::mcas
