// The server's side of a bound file that changes while a peer accesses it by filekey, for tests of
// the orders of both.
//
// A file system gives blocks that a file has given up to others, and a device that still knew the
// old layout would read or overwrite them there. Here somebody is always waiting for blocks, gets
// all that the allocator calls free, at once, and fills them. So no other file has to happen to get
// the right ones.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "services/fs/fs.h"
#include "systems/nova/session.h"
#include "systems/novad/bindings.h"
#include "tests/support/orders.h"

namespace perdura::systems::novad::test {

// The bytes of a file, one each; kHole where it has no written data, which cannot be READ. The end
// of the vector is that of the file.
inline constexpr int kHole = -1;
// A zero that the change has written.
inline constexpr int kZeroed = -2;
using Contents = std::vector<int>;
constexpr char letter_of(int one) { return one < 0 ? '\0' : static_cast<char>(one); }

// A byte tells who has written it: it is the file's as it was made, the change's, a WRITE's, or
// that of whoever got the block.
inline constexpr char kBefore = 'a';
inline constexpr char kChanged = 'B';
inline constexpr char kWritten = 'w';
inline constexpr char kOthers = '!';

inline constexpr std::uint64_t kBlocks = 3;
inline constexpr Bytes kSize = kBlocks * fs::kBlock - 1000;

// How the file lies in memory when it is made.
enum class Shape : std::uint8_t {
  adjoining,  // in one extent
  apart,      // in an extent for each block
  unwritten,  // the block in the middle has space but no data, so a write gets several extents
};
inline constexpr std::array kShapes{Shape::adjoining, Shape::apart, Shape::unwritten};
std::string_view to_string(Shape shape);
// The contents of a file of this shape. If peers may WRITE to it, it has zeros instead of holes.
Contents contents_of(Shape shape, bool is_in_place);

class Owner {
 public:
  // In a new file system, so that the same is allocated in each history.
  static Task<std::unique_ptr<Owner>> open(Thread& thread);
  ~Owner() { bindings_.clear(); }

  Task<> make_file(Shape shape, bool is_in_place);
  Task<> remove_file();
  fabric::RemoteKey key() const { return {bindings_.state(number(), rights_).filekey}; }

  // As novad's server does with a request: no operation meets blocks that the device still uses,
  // and the answer comes when the device has learned of the change.
  Task<> execute(const std::function<Task<>(Owner&)>& change);
  // True if nobody has changed the blocks of others meanwhile.
  bool others_have_theirs() const;
  // How many blocks of the file they have got.
  std::size_t blocks_of_others() const { return taken_.size(); }
  // The contents of the file, as a read by a request returns them.
  Task<std::string> text();
  std::string audit() { return volume_->volume().audit(); }

  // --- for changes
  fs::Session& files() { return *files_; }
  fs::InodeNumber file() const { return file_; }
  // As the last mount does that held the file: its filekey ends.
  Task<> give_up();
  // Another name takes the place of the file's.
  Task<> replace();

 private:
  Owner(Thread& thread, std::shared_ptr<nova::FileSystem> volume);
  std::uint64_t number() const { return static_cast<std::uint64_t>(file_); }
  pmem::Region& region() const { return volume_->volume().region(); }
  Task<> write(fs::InodeNumber inode, std::uint64_t block, Bytes size, char letter);
  Task<fs::InodeNumber> create(std::string_view name);
  void take_free_blocks();

  std::shared_ptr<nova::FileSystem> volume_;
  Bindings bindings_;
  std::unique_ptr<fs::Session> files_;
  fs::InodeNumber file_{};
  bool is_held_ = false;
  std::uint32_t rights_ = 0;                      // the holding mount has these
  std::vector<std::uint64_t> blocks_;             // those of the file when it was made
  std::deque<perdura::test::TakenMemory> taken_;  // those of them that others have got
};

}  // namespace perdura::systems::novad::test
