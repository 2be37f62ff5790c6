// A session's connection over which it READs files by their filekeys, without a message to the server.
// A READ that is refused ends the connection; the next READ makes another one.
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

class FileReader {
 public:
  // One READ transfers at most so many bytes, which it takes from the file at one time.
  static constexpr Bytes kLongest = 1 * MiB;

  FileReader(Thread& thread, NodeId server) : thread_(thread), server_(server) {}

  // READs bytes of a file. `life`: Welcome::server of the server that has given the filekey. Returns
  // false if it was refused, or there is no connection.
  Task<bool> read(std::uint64_t life, std::uint32_t filekey, Bytes offset,
                  std::span<std::byte> into);

  std::uint64_t reads() const { return reads_; }
  std::uint64_t refused() const { return refused_; }

 private:
  struct Reading {
    fabric::CompletionQueue completions;
    std::unique_ptr<fabric::QueuePair> queue_pair;
    bool works() const { return queue_pair != nullptr && queue_pair->connected(); }
  };

  Task<> connect(std::uint64_t life);

  Thread& thread_;
  NodeId server_;
  Semaphore connecting_{1};
  std::array<Room, kCalls> rooms_;
  std::vector<std::uint32_t> busy_;  // rooms that are in use
  Semaphore turns_{kCalls};
  std::uint64_t rooms_made_ = 0;
  std::shared_ptr<Reading> reading_;  // lives until its last READ has ended
  std::uint64_t reads_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace perdura::systems::novad
