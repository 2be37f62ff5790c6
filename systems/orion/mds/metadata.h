// The metadata that the MDS holds: inodes and logs in a volume of nova's, the data pages that logs
// refer to, and the words that clients may see. Shared by the threads of the MDS.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "systems/nova/volume.h"
#include "systems/orion/mds/mounts.h"
#include "systems/orion/mds/pages.h"
#include "systems/orion/mds/published.h"
#include "systems/orion/protocol/parameters.h"

namespace perdura::systems::orion {

// Makes the MDS' region on this node.
void make_metadata(Node& node, const std::string& name, const fs::FsConfig& config,
                   const Parameters& parameters);

class Metadata final : public nova::Owner {
 public:
  // Opens the region, after recovery. Throws UsageError if it cannot be used.
  static Task<std::unique_ptr<Metadata>> open(Thread& thread, const std::string& name,
                                              const Parameters& parameters);

  nova::Volume& volume() { return *volume_; }
  Pages& pages() { return pages_; }
  Mounts& mounts() { return mounts_; }
  PublishedWords& words() { return *words_; }
  pmem::Region& region() { return *region_; }

  // Appends a client's entries to the log of an inode. `tail` is the tail word that they are to
  // follow, or nullopt if they are appended whatever the log ends with. Returns the tail word after
  // them in `found`, or the one that the log has. Returns resource_unavailable_try_again if that is
  // another one than `tail`.
  std::errc append(nova::Context& context, SessionNumber session, std::uint64_t inode,
                   std::uint64_t generation, std::optional<std::uint64_t> tail,
                   std::span<const std::byte> entries, std::uint64_t& found);
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
  void changed(std::uint64_t inode) override {
    if (words_) words_->publish(inode);
  }

 private:
  explicit Metadata(const Parameters& parameters)
      : pages_(parameters.groups, parameters.pages, parameters.chunk_pages) {}

  bool claim(const nova::Inode& inode, SessionNumber session, std::span<const std::byte> entries,
             std::vector<std::uint64_t>& claimed);

  std::unique_ptr<pmem::Region> region_;
  std::shared_ptr<void> ownership_;
  Pages pages_;
  Mounts mounts_;
  std::unique_ptr<nova::Volume> volume_;
  std::unique_ptr<PublishedWords> words_;
  std::atomic<std::uint64_t> conflicts_{0};
};

}  // namespace perdura::systems::orion
