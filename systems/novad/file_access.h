// A session's connection over which it READs and WRITEs files by their filekeys, without a message to
// the server. One that is refused ends the connection; the next one makes another.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "platform/platform.h"
#include "systems/novad/messages.h"
#include "systems/novad/room.h"

namespace perdura::systems::novad {

class FileAccess {
 public:
  // One READ or WRITE transfers at most so many bytes.
  static constexpr Bytes kLongest = 1 * MiB;

  FileAccess(Thread& thread, NodeId server) : thread_(thread), server_(server) {}

  // READs bytes of a file. `life`: Welcome::server of the server that has given the filekey. Returns
  // false if it was refused, or there is no connection.
  Task<bool> read(std::uint64_t life, std::uint32_t filekey, Bytes offset,
                  std::span<std::byte> into);

  // Returns when the server's device has the data.
  Task<bool> write(std::uint64_t life, std::uint32_t filekey, Bytes offset,
                   std::span<const std::byte> data);

  std::uint64_t reads() const { return reads_; }
  std::uint64_t writes() const { return writes_; }
  std::uint64_t refused() const { return refused_; }

 private:
  struct AccessConnection {
    fabric::CompletionQueue completions;
    std::unique_ptr<fabric::QueuePair> queue_pair;
    bool works() const { return queue_pair != nullptr && queue_pair->connected(); }
  };

  Task<> connect(std::uint64_t life);
  // Returns null if there can be no connection.
  Task<std::shared_ptr<AccessConnection>> connected(std::uint64_t life);
  Task<std::uint32_t> take_room(Bytes size);
  void give_back_room(std::uint32_t number);

  Thread& thread_;
  NodeId server_;
  Semaphore connecting_{1};
  std::array<Room, kCalls> rooms_;
  std::vector<std::uint32_t> busy_;  // rooms that are in use
  Semaphore turns_{kCalls};
  std::uint64_t rooms_made_ = 0;
  std::shared_ptr<AccessConnection> connection_;  // lives until its last READ has ended
  std::uint64_t reads_ = 0;
  std::uint64_t writes_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace perdura::systems::novad
