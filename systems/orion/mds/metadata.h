// The metadata that the MDS holds: inodes and logs in a volume of nova's, the data pages that logs
// refer to, and the words that clients may see. Shared by the threads of the MDS.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "systems/nova/volume.h"
#include "systems/orion/mds/locks.h"
#include "systems/orion/mds/mirror.h"
#include "systems/orion/mds/mounts.h"
#include "systems/orion/mds/pages.h"
#include "systems/orion/mds/published.h"
#include "systems/orion/mds/reservations.h"
#include "systems/orion/protocol/parameters.h"

namespace perdura::systems::orion {

// Makes the MDS' region on this node.
void make_metadata(Node& node, const std::string& name, const fs::FsConfig& config,
                   const Parameters& parameters);

// The entries of a client for one inode's log.
struct Commit {
  SessionNumber session = 0;
  std::uint64_t inode = 0;
  std::uint64_t generation = 0;
  std::optional<std::uint64_t> tail;   // the tail word that they follow; absent: whatever it is
  std::optional<std::uint64_t> epoch;  // in which their pages were written; absent: in any
  bool is_journaled = false;           // each store has an immediate of each page
  std::span<const std::byte> entries{};
};
struct Appended {
  std::errc error{};
  std::uint64_t tail = 0;  // the tail word after them, or the one that the log has
  bool waits = false;      // they have yet to be applied to the inode in DRAM: catch_up()
};

class Metadata final : public nova::Owner {
 public:
  // Opens the region, after recovery. Throws UsageError if it cannot be used.
  static Task<std::unique_ptr<Metadata>> open(Thread& thread, const std::string& name,
                                              const Parameters& parameters);
  // The same for the memory that a mirror follows; makes a file system there if there is none yet.
  static Task<std::unique_ptr<Metadata>> open(Thread& thread, const std::string& name,
                                              const fs::FsConfig& config,
                                              const Parameters& parameters,
                                              std::unique_ptr<Mirror> mirror);

  nova::Volume& volume() { return *volume_; }
  Pages& pages() { return pages_; }
  Mounts& mounts() { return mounts_; }
  Members& members() { return *members_; }
  Locks& locks() { return locks_; }
  Reservations& reservations() { return reservations_; }
  PublishedWords& words() { return *words_; }
  // The memory that clients READ.
  pmem::Region& region() { return mirror_ ? mirror_->memory() : *region_; }

  // Waits until the mirror, if there is one, has all changes made so far, and their words are
  // published. Must come before an answer, on the network thread. False if the mirror will never
  // have them, so that nobody may be told of them.
  Task<bool> settle();
  bool has_failed() const { return mirror_ && mirror_->has_failed(); }
  bool has_mirror() const { return mirror_ != nullptr; }
  // If there is a mirror, every change is made between these, on the network thread, so that pause()
  // can wait until nothing changes. resume() ends that.
  Task<> begin_change() {
    if (mirror_ == nullptr) co_return;
    while (is_paused_) co_await wait(resumed_);
    ++changing_;
  }
  void end_change() {
    if (mirror_ == nullptr) return;
    if (--changing_ == 0) resumed_.wake_all();
  }
  bool is_paused() const { return is_paused_; }
  Task<> pause() {
    is_paused_ = true;
    while (changing_ > 0) co_await wait(resumed_);
  }
  void resume() {
    is_paused_ = false;
    resumed_.wake_all();
  }
  Mirror& mirror() { return *mirror_; }
  // The thread calls this before its endpoint is gone. Nothing may be settled afterwards.
  void disconnect() {
    if (mirror_) mirror_->disconnect();
  }

  // Appends a client's entries to the log of an inode. The error is resource_unavailable_try_again
  // if the log's tail is another one than the commit follows, and connection_reset if its pages were
  // written in another epoch.
  Appended append(nova::Context& context, const Commit& commit);
  // Lends the pages that are allocated to these blocks of a file, and unwritten, to the session, which
  // may then write to them in place. Returns resource_unavailable_try_again if there are other pages,
  // or if one is lent to somebody else.
  std::errc lend(SessionNumber session, std::uint64_t inode, std::uint64_t first,
                 std::uint64_t count);
  // Applies entries that wait, and collects garbage in the log.
  void catch_up(nova::Context& context, std::uint64_t inode);
  std::uint64_t conflicts() const { return conflicts_.load(std::memory_order_relaxed); }

  // --- nova::Owner
  bool are_pages(std::uint64_t first, std::uint64_t count) const override {
    return pages_.are_pages(first, count);
  }
  std::uint64_t mark_used(std::uint64_t first, std::uint64_t count) override {
    return pages_.mark_used(first, count);
  }
  void free(std::uint64_t first, std::uint64_t count) override { pages_.free(first, count); }
  bool is_used(std::uint64_t page) const override { return pages_.is_used(page); }
  void changed(std::uint64_t inode) override;
  Time seen_until(Time at) override;

 private:
  // Words that are published when the mirror has what they are about.
  struct Unpublished {
    std::uint64_t change = 0;
    std::uint64_t inode = 0;
    InodeWords words{};
  };
  // At that time everything was published that had been committed before `since`.
  struct Publication {
    Time when{};
    Time since{};
  };

  explicit Metadata(const Parameters& parameters)
      : free_delay_(parameters.free_delay),
        pages_(parameters.groups, parameters.pages, parameters.chunk_pages) {}

  Task<> open_volume(Thread& thread, const std::string& name, const Parameters& parameters);
  void publish_until(std::uint64_t change, Time since);
  Appended append(nova::Context& context, const Commit& commit, nova::Locked::For what);
  // Marks the pages as used that the entries give to the file, and returns them in `claimed`. A page
  // that is used already must be the file's own, and be borrowed to be written; without `inode` there
  // may be no such page. Returns invalid_argument if a page is somebody else's, and connection_reset
  // if it was written in another epoch.
  std::errc claim(const nova::Inode* inode, const Commit& commit,
                  std::vector<std::uint64_t>& claimed);
  void end_loans(const Commit& commit);

  Picoseconds free_delay_;
  std::unique_ptr<Mirror> mirror_;  // null if there is none
  std::unique_ptr<pmem::Region> region_;
  std::shared_ptr<void> ownership_;
  Pages pages_;
  Mounts mounts_;
  Locks locks_;
  Reservations reservations_;
  std::unique_ptr<Members> members_;
  std::unique_ptr<nova::Volume> volume_;
  std::unique_ptr<PublishedWords> words_;
  std::atomic<std::uint64_t> conflicts_{0};
  bool is_paused_ = false;
  std::uint32_t changing_ = 0;
  WaitList resumed_;
  SpinLock unpublished_lock_;
  std::deque<Unpublished> unpublished_;
  std::deque<Publication> publications_;  // some of the latest, oldest first
};

}  // namespace perdura::systems::orion
