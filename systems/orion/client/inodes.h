// A session's copies of inodes and their logs (section 4.1.2). A copy is what reading the log of the
// inode at the MDS would yield: it is built from RDMA READs, extended when the inode's tail word has
// moved, and gets the session's own entries as they are committed (section 4.2.3, Figure 4.5):
//
//   (a) extension   the tail has moved: the entries that follow are READ and applied
//   (b) rebuild     the log has other entries than the copy, or was collected: all of it is READ
//   (c) an RPC      the answer has the tail after it, so (a) follows at the next use
//
// A log page is known by a wide pointer: its offset in the MDS' region, and the local buffer with
// its copy.
//
// How long a copy may be relied on: the MDS reuses nothing sooner than Parameters::free_delay after
// its last reference was removed. So whatever an up-to-date log refers to can be READ, and is what
// the log means, for that long after the tail was READ (Inodes::is_current()).
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "systems/nova/inode.h"
#include "systems/orion/client/file_system.h"
#include "systems/orion/client/link.h"
#include "systems/orion/client/page_cache.h"

namespace perdura::systems::orion {

struct CachedInode {
  fs::InodeNumber identity{};  // by which the operation that uses it knows the inode
  nova::Inode inode;
  nova::InodeBase base;                // as of inode.generation
  std::vector<std::uint32_t> buffers;  // copies of inode.log.pages, by index
  bool busy = false;                   // an operation uses it
  WaitList waiting;
  std::uint32_t refusals = 0;    // how often the MDS has refused the operation that uses it
  std::uint64_t used = 0;        // the time of its last use, as a count
  Time checked{};                // just before the tail was READ last
  std::uint64_t connection = 0;  // MdsLink::connection() by which the log was READ
  // Entries that were committed without an answer, and the end of the log before them.
  std::uint64_t unconfirmed = 0;
  Bytes confirmed = 0;
  int looks = 0;  // how often the tail was READ since, while the log did not have them
};

class Inodes {
 public:
  Inodes(Thread& thread, MdsLink& link, PageCache& pages, FileSystem& files);

  // An operation's exclusive use of an inode's copy.
  class Use {
   public:
    Use(Inodes& inodes, CachedInode& inode) : inodes_(&inodes), inode_(&inode) {}
    Use(Use&& other) noexcept
        : inodes_(std::exchange(other.inodes_, nullptr)), inode_(other.inode_) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (inodes_ != nullptr) inodes_->end(*inode_);
    }
    CachedInode& operator*() const { return *inode_; }
    CachedInode* operator->() const { return inode_; }

   private:
    Inodes* inodes_;
    CachedInode* inode_;
  };
  // Waits until no other operation of the session uses it.
  Task<Use> use(fs::InodeNumber identity);
  // The words of an inode that are READ after those of another.
  struct LaterLook {
    std::uint64_t inode = 0;
    InodeWords words{};
  };
  // Brings the copy up to date. Returns no_such_file_or_directory if there is no such inode,
  // io_error if its log cannot be read, not_connected. `later`, if not null, is READ in the round
  // trip of the copy's last look at its inode.
  Task<std::errc> refresh(CachedInode& inode, LaterLook* later = nullptr);
  // Adds the session's own entries, which the log has now; `tail` is the tail word after them.
  Task<> add_own(CachedInode& inode, std::span<const std::byte> entries, std::uint64_t tail);
  // True if the log's next entries of this length go into its last page.
  bool fits(const CachedInode& inode, Bytes length) const;
  // Adds entries that were committed without an answer.
  void add_unconfirmed(CachedInode& inode, std::span<const std::byte> entries);
  // True if what was READ since the last refresh() of all that the copy refers to is as it was: if
  // that was not long ago, or if the log is still the same, so that nothing has been freed.
  Task<bool> is_current(CachedInode& inode);
  void forget(CachedInode& inode);

  // The region with the copies of log pages, in which offsets of names and attributes are.
  pmem::Region& logs() { return *memory_; }

  struct Counts {
    std::uint64_t extensions = 0;
    std::uint64_t rebuilds = 0;
    std::uint64_t late_reads = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  void end(CachedInode& inode);
  Task<bool> look(const CachedInode& inode, InodeWords& words, LaterLook* later);
  bool is_fresh(const CachedInode& inode) const;
  bool take_buffer(const CachedInode& owner, std::uint32_t& buffer);
  bool evict_one(const CachedInode& except);
  fabric::LocalBuffer buffer(std::uint32_t number, Bytes from, Bytes length) const;
  // READs bytes of a log page into its buffer.
  Task<bool> read_page(const CachedInode& inode, std::size_t index, Bytes from, Bytes length);
  Task<std::errc> update(CachedInode& inode, const InodeWords& words);
  Task<std::errc> rebuild(CachedInode& inode, const InodeWords& words);
  Task<std::errc> extend(CachedInode& inode, const InodeWords& words);
  Task<std::errc> follow_pages(CachedInode& inode, Bytes page, Bytes end);
  bool add_page(CachedInode& inode, Bytes page);
  // Applies the entries of the last page between these offsets in it. Returns false if one is none.
  bool apply_entries(CachedInode& inode, Bytes from, Bytes to);
  void apply_one(CachedInode& inode, std::span<const std::byte> bytes, Bytes local, bool is_own);

  MdsLink& link_;
  PageCache& pages_;
  FileSystem& files_;
  std::unique_ptr<pmem::Region> memory_;
  fabric::MemoryRegion registered_;
  std::vector<std::uint32_t> free_;  // buffers
  std::map<std::uint64_t, std::unique_ptr<CachedInode>> inodes_;
  std::uint64_t clock_ = 0;
  Counts counts_;
};

}  // namespace perdura::systems::orion
