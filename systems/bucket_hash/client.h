// The part of a hash index's client that does not depend on the index: concurrent operations,
// requests to the server, and one-sided READs.
//
// Every operation in flight has a lane, which is the number of its call (rpc/calls.h). A lane owns
// a request slot in the server's memory and a local buffer, in which requests are composed and into
// which READs go.
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
  // `lanes` is the greatest number of operations that will be in flight at once.
  Client(Thread& thread, std::uint32_t lanes) : thread_(thread), most_lanes_(lanes) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Throws PlatformError if the server refuses or cannot be reached.
  Task<> connect(fabric::Address server);
  const Plan& plan() const { return welcome_.plan; }
  // Allocates and registers the buffers of the lanes, after connect() and before any operation.
  // `read_room` is the size of the largest READ that the index makes.
  void make_lanes(Bytes read_room);

  // An operation owns its lane as long as its lease lives. Waits while all lanes are taken.
  using Lease = rpc::Calls<ReplyStatus>::Lease;
  Task<Lease> begin() { return calls_.begin(); }

  Task<kv::Result<void>> request(Request request);

  // One READ at `offset` from the start of the index; false if the connection broke.
  Task<bool> read(std::uint32_t lane, Bytes offset, Bytes length);
  // The bytes that the last READ of this lane returned.
  std::span<const std::byte> read_bytes(std::uint32_t lane, Bytes length) const {
    return read_buffer(lane).slice(0, static_cast<std::uint32_t>(length)).bytes();
  }
  void count_torn_read() {
    ++counts_.torn_reads;
    ++counts_.retries;
  }
  const kv::SessionCounts& counts() const { return counts_; }

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
  kv::SessionCounts counts_;
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

// The outcome of a get's READs: the item, or nullopt if the key is absent.
struct LookedUp {
  std::optional<Slot> item{};
};

// The READs of one operation, through which an index looks up a key. The object must live until
// they have ended. Each returns false, or nullopt, if the connection broke.
class Reads {
 public:
  Reads(Client& client, std::uint32_t lane) : client_(client), lane_(lane) {}

  Task<bool> read(Bytes offset, Bytes length) { return client_.read(lane_, offset, length); }
  std::span<const std::byte> bytes(Bytes length) const { return client_.read_bytes(lane_, length); }
  void count_torn() { client_.count_torn_read(); }

  // Repeats a READ until its result is not torn. `search(bytes)` returns the result for these
  // bytes, with a flag `torn`.
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
  // Reads the state word at the start of the index. A client may forget older tables only according
  // to this word: during a resize an item that is not yet in the next table is still in the old
  // one.
  Task<std::optional<std::uint64_t>> read_state();

 private:
  Client& client_;
  std::uint32_t lane_;
};

}  // namespace perdura::systems::bucket_hash
