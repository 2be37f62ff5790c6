// The client of a partition as far as it does not depend on the index: operations under way at
// once, requests and one-sided READs.
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
#include "services/kv/kv.h"
#include "systems/bucket_hash/messages.h"

namespace perdura::systems::bucket_hash {

class Client {
 public:
  // At most so many operations will be under way.
  Client(Thread& thread, std::uint32_t lanes) : thread_(thread), most_lanes_(lanes) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Throws PlatformError if the server refuses or cannot be reached.
  Task<> connect(fabric::Address server);
  const Plan& plan() const { return welcome_.plan; }
  // What the index needs to read into in one operation; before any.
  void make_lanes(Bytes read_room);

  // The lane of an operation, while the lease lasts.
  using Lease = rpc::Calls<ReplyStatus>::Lease;
  Task<Lease> begin() { return calls_.begin(); }

  Task<Result<void>> request(Request request);

  // One READ from the index; false if the connection broke.
  Task<bool> read(std::uint32_t lane, Bytes offset, Bytes length);
  // What it brought.
  std::span<const std::byte> read_bytes(std::uint32_t lane, Bytes length) const {
    return read_buffer(lane).slice(0, static_cast<std::uint32_t>(length)).bytes();
  }
  void count_torn_read() {
    ++counts_.torn_reads;
    ++counts_.retries;
  }
  const SessionCounts& counts() const { return counts_; }

 private:
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

// What a get finds by READs.
struct LookedUp {
  std::optional<Slot> item{};
};

// The READs of one operation, as an index uses them to look up a key; stays until they have ended.
// Nothing, or false, comes back if the connection broke.
class Reads {
 public:
  Reads(Client& client, std::uint32_t lane) : client_(client), lane_(lane) {}

  Task<bool> read(Bytes offset, Bytes length) { return client_.read(lane_, offset, length); }
  std::span<const std::byte> bytes(Bytes length) const { return client_.read_bytes(lane_, length); }
  void count_torn() { client_.count_torn_read(); }

  // READs until that is not torn: `search(bytes)` says what is there.
  template <class Search>
  auto read_whole(Bytes offset, Bytes length, Search search)
      -> Task<std::optional<decltype(search(std::span<const std::byte>()))>> {
    for (;;) {
      if (!co_await read(offset, length)) co_return std::nullopt;
      const auto result = search(bytes(length));
      if (!result.torn) co_return result;
      count_torn();
    }
  }
  // The word at the start of the index. Only what it says now may be forgotten of older tables:
  // while items are moved, one that is not yet in the next table is still in the old one.
  Task<std::optional<std::uint64_t>> read_state();

 private:
  Client& client_;
  std::uint32_t lane_;
};

}  // namespace perdura::systems::bucket_hash
