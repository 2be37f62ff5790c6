// Volumes whose data is elsewhere, and log entries that somebody else has made.
#pragma once

#include <memory>
#include <mutex>
#include <set>

#include "systems/nova/inspect.h"
#include "systems/nova/operations.h"
#include "tests/systems/nova/support.h"

namespace perdura::systems::nova::test {

constexpr std::uint64_t number_of(fs::InodeNumber inode) {
  return static_cast<std::uint64_t>(inode);
}
inline constexpr auto kRootNumber = static_cast<std::uint64_t>(fs::kRootInode);

inline const fs::FsConfig kHome{.size = 1 * MiB,
                                .threads = 2,
                                .parameters = {{"log_page_bytes", std::uint64_t{kSmallestLogPage}},
                                               {"inodes", std::uint64_t{64}}}};

// Pages that exist nowhere.
class NoPages final : public Owner {
 public:
  static constexpr std::uint64_t kCount = 1000;

  bool are_pages(std::uint64_t first, std::uint64_t count) const override {
    return first >= kFirstPage && first + count <= kFirstPage + kCount;
  }
  std::uint64_t mark_used(std::uint64_t first, std::uint64_t count) override {
    const std::scoped_lock lock(mutex_);
    std::uint64_t before = 0;
    for (std::uint64_t page = first; page < first + count; ++page)
      before += !used.insert(page).second;
    return before;
  }
  void free(std::uint64_t first, std::uint64_t count) override {
    const std::scoped_lock lock(mutex_);
    for (std::uint64_t page = first; page < first + count; ++page) EXPECT_EQ(used.erase(page), 1U);
  }
  bool is_used(std::uint64_t page) const override {
    const std::scoped_lock lock(mutex_);
    return used.contains(page);
  }
  void changed(std::uint64_t inode) override {
    if (when_changed) when_changed(inode);
  }

  // Only while no other thread uses the volume.
  std::set<std::uint64_t> used;
  std::function<void(std::uint64_t)> when_changed;

 private:
  mutable std::mutex mutex_;
};

// A volume in the region "home", which has been made.
struct OpenVolume {
  std::unique_ptr<pmem::Region> region;
  std::unique_ptr<Volume> volume;
  std::unique_ptr<Operations> operations;
  Context context{};

  Volume* operator->() const { return volume.get(); }

  std::uint64_t create(std::uint64_t directory, std::string_view name,
                       std::uint32_t mode = S_IFREG | 0644) {
    const auto made = operations->create(directory, name, {.mode = mode}, {});
    EXPECT_TRUE(made.has_value()) << name;
    return made ? number_of(made->inode) : 0;
  }
  template <class... Entries>
  std::errc append(std::uint64_t number, const Entries&... entries) {
    std::vector<std::byte> lines;
    (add_line(lines, entries), ...);
    const Locked locked(*volume, Locked::For::changing, {number});
    return volume->append(context, *locked[0], lines, Urgency::grows);
  }
  template <class Entry>
  static void add_line(std::vector<std::byte>& lines, const Entry& entry) {
    static_assert(sizeof entry <= kCacheLine);
    lines.resize(lines.size() + kCacheLine);
    std::memcpy(lines.data() + lines.size() - kCacheLine, &entry, sizeof entry);
  }
};

inline Task<OpenVolume> open_home(Thread& thread, const fs::FsConfig& config, Owner* owner,
                                  Picoseconds free_delay = {}) {
  Geometry geometry;
  geometry.owner = owner;
  Parameters parameters = Parameters::of(config);
  parameters.free_delay = free_delay;
  OpenVolume home;
  home.region = thread.node.open_region("home");
  home.volume = co_await open_volume(thread, *home.region, geometry, parameters, 2, false);
  home.operations = std::make_unique<Operations>(*home.volume, 0);
  home.context.number = 1;
  co_return home;
}

inline EntryHeader made(EntryType type, std::uint8_t flags = 0) {
  return {.type = type, .flags = flags, .seconds = 7, .mode = S_IFREG | 0644};
}
// Says that `count` blocks of the file are in pages from `page` on, the first page being 0.
inline WriteEntry pages(std::uint64_t file_block, std::uint64_t page, std::uint64_t count,
                        Bytes size, std::uint8_t flags = 0) {
  return {made(EntryType::write, flags), file_block, kFirstPage + page, count, size};
}

}  // namespace perdura::systems::nova::test
