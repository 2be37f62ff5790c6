// A session's connection over which it READs and WRITEs files by their filekeys, without a message
// to the server. One that is refused ends the connection; the next one makes another.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "platform/platform.h"
#include "services/fs/fs.h"
#include "systems/novad/messages.h"
#include "systems/novad/room.h"

namespace perdura::systems::novad {

class FileAccess {
 public:
  // One READ or WRITE transfers at most so many bytes.
  static constexpr Bytes kLongest = 1 * MiB;

  FileAccess(Thread& thread, NodeId server) : thread_(thread), server_(server) {}

  // READs bytes of a file. `life`: Welcome::server of the server that has given the filekey.
  // Returns false if it was refused, or there is no connection.
  Task<bool> read(std::uint64_t life, std::uint32_t filekey, Bytes offset,
                  std::span<std::byte> into);

  // Returns when the server's device has the data, which may be in memory only later.
  Task<bool> write(std::uint64_t life, fs::InodeNumber inode, std::uint32_t filekey, Bytes offset,
                   std::span<const std::byte> data);

  // Persists all that was written to the file by this filekey, with one message. Returns false if
  // that was refused, or if nobody knows whether the data of a connection that has broken arrived.
  bool can_commit() const { return thread_.endpoint.capabilities().commits; }
  Task<bool> commit(std::uint64_t life, fs::InodeNumber inode, std::uint32_t filekey);

  // Waits until all data that has been written is in the server's memory or caches. Afterwards
  // lost() tells of which files that is not known, because a connection has broken in between: it
  // returns true once for each, and lost_any() for all of them together.
  Task<> settle();
  bool lost(fs::InodeNumber inode) { return lost_.erase(inode) != 0; }
  bool lost_any() { return !std::exchange(lost_, {}).empty(); }

  std::uint64_t reads() const { return reads_; }
  std::uint64_t writes() const { return writes_; }
  std::uint64_t commits() const { return commits_; }
  std::uint64_t refused() const { return refused_; }

 private:
  struct AccessConnection {
    fabric::CompletionQueue completions;
    std::unique_ptr<fabric::QueuePair> queue_pair;
    // The files with WRITEs that no READ or COMMIT has followed yet, each with the number of its last WRITE,
    // and where the last WRITE of all went to.
    std::map<fs::InodeNumber, std::uint64_t> unsettled;
    std::uint64_t written = 0;
    fabric::RemoteAddress last;
    bool works() const { return queue_pair != nullptr && queue_pair->connected(); }
  };

  Task<> connect(std::uint64_t life);
  void give_up(AccessConnection& connection);
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
  std::set<fs::InodeNumber> lost_;
  std::uint64_t reads_ = 0;
  std::uint64_t writes_ = 0;
  std::uint64_t commits_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace perdura::systems::novad
