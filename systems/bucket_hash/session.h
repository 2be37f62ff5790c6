// The client of a partition as far as the hash indexes share it: operations under way at once, and
// put and erase, which are requests. An index adds get, by one-sided READs.
//
// An operation under way owns a lane: a slot for its request in the server's memory, and memory of
// its own to make the request and to read into. Replies land in any of the reply buffers; whichever
// operation waits takes the next one and hands it to the lane that it is for.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "platform/platform.h"
#include "systems/bucket_hash/messages.h"
#include "systems/kv.h"

namespace perdura::systems::bucket_hash {

class Session : public KvSession {
 public:
  Task<Result<void>> put(Key key, Value value) final;
  Task<Result<void>> erase(Key key) final;
  SessionCounts counts() const final { return counts_; }

 protected:
  Session(Thread& thread, std::uint32_t lanes) : thread_(thread), most_lanes_(lanes) {}

  // Throws PlatformError if the server refuses or cannot be reached.
  Task<> connect(fabric::Address server);
  // What the index needs to read into in one operation; before any.
  void make_lanes(Bytes read_room);

  // The lane of an operation under way.
  class Lease {
   public:
    Lease(Session& session, std::uint32_t lane) : session_(&session), lane_(lane) {}
    Lease(Lease&& other) noexcept
        : session_(std::exchange(other.session_, nullptr)), lane_(other.lane_) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (session_ != nullptr) session_->give_back(lane_);
    }
    std::uint32_t lane() const { return lane_; }

   private:
    Session* session_;
    std::uint32_t lane_;
  };
  Task<Lease> lease();

  // READs from the index into the lane's memory from `at` on; false if the connection broke.
  Task<bool> read(std::uint32_t lane, Bytes at, Bytes offset, Bytes length);
  std::span<const std::byte> read_bytes(std::uint32_t lane, Bytes at, Bytes length) const {
    return read_buffer(lane).slice(at, static_cast<std::uint32_t>(length)).bytes();
  }

  const Plan& plan() const { return welcome_.plan; }

  Thread& thread_;
  SessionCounts counts_;

 private:
  struct Lane {
    std::optional<ReplyStatus> answer;
    WaitList waiting;
  };

  Task<Result<void>> request(Request request);
  Task<std::optional<ReplyStatus>> answer_to(std::uint32_t lane);
  void deliver(const fabric::ReceiveCompletion& completion);
  void fail();
  void give_back(std::uint32_t lane);

  Bytes lane_room() const { return kRequestRoom + read_room_ + kReplyRoom; }
  fabric::LocalBuffer request_buffer(std::uint32_t lane) const {
    return buffer_memory_.local(lane * lane_room(), sizeof(Request));
  }
  fabric::LocalBuffer read_buffer(std::uint32_t lane) const {
    return buffer_memory_.local(lane * lane_room() + kRequestRoom,
                                static_cast<std::uint32_t>(read_room_));
  }
  fabric::LocalBuffer reply_buffer(std::uint64_t index) const {
    return buffer_memory_.local(index * lane_room() + kRequestRoom + read_room_, sizeof(Reply));
  }

  std::uint32_t most_lanes_;
  Welcome welcome_;
  Bytes read_room_ = 0;
  bool broken_ = false;
  bool receiving_ = false;
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> free_lanes_;
  WaitList waiting_for_lane_;
  std::unique_ptr<pmem::Region> buffers_;
  fabric::MemoryRegion buffer_memory_;
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::ReceiveQueue> replies_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
};

}  // namespace perdura::systems::bucket_hash
