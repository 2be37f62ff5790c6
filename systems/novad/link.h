// A session's connection to the server, for requests. It connects with the first one; when the
// connection has broken, there is no other.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "platform/platform.h"
#include "rpc/calls.h"
#include "rpc/receive_buffers.h"
#include "systems/novad/messages.h"
#include "systems/novad/room.h"

namespace perdura::systems::novad {

struct Answer {
  std::int32_t error = 0;
  FileState file{};
  std::vector<std::byte> results;
};

class Link {
 public:
  // `mount`: the number of the session's mount; 0 for a new one.
  Link(Thread& thread, NodeId server, std::uint64_t mount, Purpose purpose = Purpose::requests);

  // Connects if nobody has tried. Returns false if there is no connection.
  Task<bool> connected();
  const Welcome& welcome() const { return welcome_; }

  // Sends a request: the arguments, and then data. `most`: the longest results that are expected;
  // they may be longer. Returns nullopt if the connection has broken.
  Task<std::optional<Answer>> call(Request request, std::uint64_t inode,
                                   std::span<const std::byte> arguments,
                                   std::span<const std::byte> data = {}, Bytes most = 0);

  std::uint64_t calls() const { return count_; }

 private:
  struct Received {
    ReplyHeader header{};
    std::vector<std::byte> inlined{};
  };
  Task<> connect();
  void make_room(rpc::Call call, Bytes size);
  Task<std::optional<Answer>> exchange(rpc::Call call, MessageHeader header,
                                       std::span<const std::byte> arguments,
                                       std::span<const std::byte> data);
  void take(const fabric::ReceiveCompletion& completion);
  fabric::LocalBuffer request_buffer(rpc::Call call) const {
    return registered_.local(Bytes{call} * kMessageRoom, static_cast<std::uint32_t>(kMessageRoom));
  }

  Thread& thread_;
  NodeId server_;
  std::uint64_t mount_;
  Purpose purpose_;
  Semaphore connecting_{1};
  bool has_tried_ = false;
  Welcome welcome_{};
  std::unique_ptr<pmem::Region> memory_;  // requests, then receive buffers
  fabric::MemoryRegion registered_;
  // By call: the server READs the rest of a request from it, and WRITEs that of an answer into it.
  std::array<Room, kCalls> rooms_;
  std::uint64_t rooms_made_ = 0;
  fabric::CompletionQueue completions_;
  rpc::ReceiveBuffers replies_;
  rpc::Calls<Received> calls_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
  std::uint64_t count_ = 0;
};

}  // namespace perdura::systems::novad
