// The server's bound files: each is a registration of the file's extents with the server's device,
// whose key is the filekey (section 5.1.1). Peers address it by offsets in the file. A file that
// some mounts may only read, and others may write, has a registration for each, as a right belongs
// to a key.
//
// Nova announces what changes (nova/layout_callbacks.h); settle() carries it out. A change of
// several extents is not atomic at the device, so the whole range is unmapped first: a READ of both
// old and new data is refused, and its client asks by a request. The server settles before each
// operation, so that none meets blocks that the device still uses, and again before the answer:
// whoever has seen the effect of an operation, READs no older data.
//
// Nova announces on the thread that has changed the file, which may be one of a local program. All
// else happens on the server's thread.
//
// What peers WRITE in place they make persistent by COMMITs, which know only the registration over
// which it came. So when a registration ends, the server persists the file: the next one, which
// another mount may get, begins with nothing to commit.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "platform/platform.h"
#include "systems/file_region.h"
#include "systems/nova/layout_callbacks.h"
#include "systems/nova/volume.h"
#include "systems/novad/messages.h"

namespace perdura::systems::novad {

class Bindings final : public nova::LayoutCallbacks {
 public:
  // Belongs to the thread. The volume must have no session yet.
  Bindings(Thread& thread, nova::Volume& volume);

  // For a mount that holds the inode. Does nothing if it is no regular file.
  Task<> bind(std::uint64_t inode);
  // Gives a bound file a filekey for reads, unless it has one or cannot be registered. With `files`
  // it is one for reads and writes: peers may write to what the file has now, in place. Then the
  // file is mapped, by this session, and its blocks do not move.
  Task<> let_use(std::uint64_t inode, fs::Session* files);
  // A sync READs, so who may only write has no filekey.
  static bool may_read_and_write(std::uint32_t rights) {
    return rights == (fs::kMayRead | fs::kMayWrite);
  }
  // Undoes a bind(). After the last one the filekey is refused, and nothing that the device has
  // begun with it is under way.
  Task<> unbind(std::uint64_t inode);
  // Must be called before the session ends that bind() was given.
  void clear() { bindings_.clear(); }
  // Carries out what nova has announced, and frees the blocks that nobody uses any more.
  Task<> settle();
  // True if everything that has been announced is carried out. May be called by any thread.
  bool is_settled() const;
  // The file for a mount with these rights.
  FileState state(std::uint64_t inode, std::uint32_t rights) const;
  // The files to which peers may write in place.
  std::vector<std::uint64_t> writable_files() const;
  // The number of changes that it has carried out.
  std::uint64_t changes() const { return changes_; }

  void cm_bind(std::uint64_t inode) override;
  void cm_init(std::uint64_t inode, Bytes size, std::span<const fs::MappedExtent> extents) override;
  void cm_update(std::uint64_t inode, Bytes size, Bytes at, Bytes length,
                 std::span<const fs::MappedExtent> extents) override;
  void cm_invalidate(std::uint64_t inode, Bytes size, Bytes at, Bytes length) override;
  void cm_destroy(std::uint64_t inode) override;
  bool cm_keeps(const nova::Extent& blocks) override;
  bool cm_is_behind() const override { return !is_settled(); }

 private:
  struct Binding {
    std::uint64_t users = 0;                  // mounts that hold the file
    std::unique_ptr<fs::FileMapping> pinned;  // if peers may write
    Bytes size = 0;
    bool is_whole = false;  // all bytes of the file are mapped
    // The FileMRs for reads, and for reads and writes; null unless it is bound to the file. There
    // are none any more if the device has had no room for a change.
    std::array<std::unique_ptr<FileRegion>, 2> files;
    bool has_no_room = false;
    fabric::ExtentTable table;  // what nova has mapped
  };
  struct LayoutChange {
    std::uint64_t inode = 0;
    Bytes size = 0;
    Bytes at = 0;
    Bytes length = 0;
    std::vector<fabric::Extent> extents;
  };

  static Task<std::unique_ptr<fs::FileMapping>> pin(std::uint64_t inode, fs::Session& files);
  void announce(LayoutChange change);
  Task<> drain();
  Task<> carry_out(const LayoutChange& change);
  Task<> change_map(Binding& binding, const LayoutChange& change);
  void register_for(Binding& binding, bool writes);
  Task<> end_maps(Binding& binding);
  void persist(const Binding& binding);
  static void note_size(Binding& binding, Bytes size);

  Thread& thread_;
  nova::Volume& volume_;
  Semaphore turn_{1};  // to change registrations
  std::map<std::uint64_t, Binding> bindings_;
  mutable SpinLock lock_;               // for the next two
  std::deque<LayoutChange> announced_;  // the first one may be under way
  std::vector<nova::Extent> kept_;      // blocks that wait for the changes that are announced
  std::uint64_t changes_ = 0;
};

}  // namespace perdura::systems::novad
