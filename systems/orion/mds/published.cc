#include "systems/orion/mds/published.h"

#include <fmt/format.h>

namespace perdura::systems::orion {

PublishedWords::PublishedWords(Node& node, std::string_view name, pmem::Region& volume,
                               const nova::Geometry& geometry, const Members& members)
    : volume_(volume),
      geometry_(geometry),
      members_(members),
      region_(node.create_region(fmt::format("{} words", name),
                                 (geometry.inodes + 1) * sizeof(InodeWords), pmem::Medium::dram)) {
  for (std::uint64_t inode = 1; inode <= geometry.inodes; ++inode) {
    const std::uint64_t state =
        volume.load(geometry.inode_offset(inode) + offsetof(nova::InodeRecord, state));
    if ((state & 1) != 0) publish(inode, stored(inode));
  }
}

InodeWords PublishedWords::stored(std::uint64_t inode) const {
  const Bytes record = geometry_.inode_offset(inode);
  return {.state = volume_.load(record + nova::kStateWord),
          .tail = volume_.load(record + nova::kTailWord),
          .head = {volume_.load(record + nova::kHeadWords),
                   volume_.load(record + nova::kHeadWords + kWord)},
          .parent = volume_.load(record + nova::kParentWord)};
}

// The tail comes last: what it points to may be READ as soon as it is visible.
void PublishedWords::publish(std::uint64_t inode, const InodeWords& words) {
  const Bytes to = offset_of(inode);
  region_->store(to + offsetof(InodeWords, epoch), members_.published());
  region_->store(to + offsetof(InodeWords, head), words.head[0]);
  region_->store(to + offsetof(InodeWords, head) + kWord, words.head[1]);
  region_->store(to + offsetof(InodeWords, parent), words.parent);
  region_->store(to + offsetof(InodeWords, state), words.state);
  region_->store(to + offsetof(InodeWords, tail), words.tail);
}

void PublishedWords::publish(const MembersLine& members) {
  region_->store(offsetof(MembersLine, epoch), 0);
  region_->store(offsetof(MembersLine, members), members.members);
  region_->store(offsetof(MembersLine, targets), members.targets);
  region_->store(offsetof(MembersLine, same_epoch), members.same_epoch);
  region_->store(offsetof(MembersLine, epoch), members.epoch);
}

}  // namespace perdura::systems::orion
