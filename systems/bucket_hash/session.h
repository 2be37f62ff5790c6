// The client of a partition as far as the hash indexes share it: operations under way at once, and
// put and erase, which are requests. An index adds the look-up of a get, by one-sided READs.
//
// An operation under way has a lane, which is the number of its call (rpc/calls.h): a slot for its
// request in the server's memory, and memory of its own to make the request and to read into.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "platform/platform.h"
#include "rpc/calls.h"
#include "rpc/receive_buffers.h"
#include "systems/bucket_hash/messages.h"
#include "systems/kv.h"

namespace perdura::systems::bucket_hash {

class Session : public KvSession {
 public:
  Task<Result<Bytes>> get(Key key, std::span<std::byte> into) final;
  Task<Result<void>> put(Key key, Value value) final;
  Task<Result<void>> erase(Key key) final;
  SessionCounts counts() const final { return counts_; }

 protected:
  Session(Thread& thread, std::uint32_t lanes) : thread_(thread), most_lanes_(lanes) {}

  // Throws PlatformError if the server refuses or cannot be reached.
  Task<> connect(fabric::Address server);
  // What the index needs to read into in one operation; before any.
  void make_lanes(Bytes read_room);

  // What a get finds by READs. Like all that follow, nothing if the connection broke.
  struct LookedUp {
    std::optional<Slot> item{};
  };
  virtual Task<std::optional<LookedUp>> look_up(std::uint32_t lane, Slot key) = 0;

  // READs from the index until that is not torn: `search(bytes)` says what is there.
  template <class Search>
  auto read_whole(std::uint32_t lane, Bytes offset, Bytes length, Search search)
      -> Task<std::optional<decltype(search(std::span<const std::byte>()))>> {
    for (;;) {
      if (!co_await read(lane, offset, length)) co_return std::nullopt;
      const auto result = search(read_bytes(lane, length));
      if (!result.torn) co_return result;
      count_torn_read();
    }
  }
  // One READ.
  Task<bool> read(std::uint32_t lane, Bytes offset, Bytes length);
  std::span<const std::byte> read_bytes(std::uint32_t lane, Bytes length) const {
    return read_buffer(lane).slice(0, static_cast<std::uint32_t>(length)).bytes();
  }
  void count_torn_read() {
    ++counts_.torn_reads;
    ++counts_.retries;
  }
  // The word at the start of the index. Only what it says now may be forgotten of older tables:
  // while items are moved, one that is not yet in the next table is still in the old one.
  Task<std::optional<std::uint64_t>> read_state(std::uint32_t lane);

  const Plan& plan() const { return welcome_.plan; }

 private:
  Task<Result<void>> request(Request request);
  void take(const fabric::ReceiveCompletion& completion);

  Bytes lane_room() const { return kRequestRoom + read_room_ + kReplyRoom; }
  fabric::LocalBuffer request_buffer(std::uint32_t lane) const {
    return buffer_memory_.local(lane * lane_room(), sizeof(Request));
  }
  fabric::LocalBuffer read_buffer(std::uint32_t lane) const {
    return buffer_memory_.local(lane * lane_room() + kRequestRoom,
                                static_cast<std::uint32_t>(read_room_));
  }

  Thread& thread_;
  SessionCounts counts_;
  std::uint32_t most_lanes_;
  Welcome welcome_;
  Bytes read_room_ = 0;
  rpc::Calls<ReplyStatus> calls_;
  std::unique_ptr<pmem::Region> buffers_;
  fabric::MemoryRegion buffer_memory_;
  fabric::CompletionQueue completions_;
  rpc::ReceiveBuffers replies_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
};

}  // namespace perdura::systems::bucket_hash
