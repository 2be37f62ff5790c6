#include "systems/orion/mds/published.h"

#include <fmt/format.h>

namespace perdura::systems::orion {

PublishedWords::PublishedWords(Node& node, std::string_view name, pmem::Region& volume,
                               const nova::Geometry& geometry)
    : volume_(volume),
      geometry_(geometry),
      region_(node.create_region(fmt::format("{} words", name),
                                 (geometry.inodes + 1) * sizeof(InodeWords), pmem::Medium::dram)) {
  for (std::uint64_t inode = 1; inode <= geometry.inodes; ++inode) {
    const std::uint64_t state =
        volume.load(geometry.inode_offset(inode) + offsetof(nova::InodeRecord, state));
    if ((state & 1) != 0) publish(inode);
  }
}

// The tail comes last: what it points to may be READ as soon as it is visible.
void PublishedWords::publish(std::uint64_t inode) {
  const Bytes from = geometry_.inode_offset(inode);
  const Bytes to = offset_of(inode);
  const auto copy = [&](Bytes in_record, Bytes in_words) {
    region_->store(to + in_words, volume_.load(from + in_record));
  };
  copy(nova::kHeadWords, offsetof(InodeWords, head));
  copy(nova::kHeadWords + kWord, offsetof(InodeWords, head) + kWord);
  copy(nova::kParentWord, offsetof(InodeWords, parent));
  copy(nova::kStateWord, offsetof(InodeWords, state));
  copy(nova::kTailWord, offsetof(InodeWords, tail));
}

}  // namespace perdura::systems::orion
