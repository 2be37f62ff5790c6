#include "systems/orion/mds/inspect.h"

#include <fmt/format.h>

#include <memory>

#include "platform/base/error.h"
#include "systems/nova/inspect.h"
#include "systems/orion/mds/superblock.h"
#include "systems/orion/protocol/known_pages.h"

namespace perdura::systems::orion {

namespace {

// Metadata that nobody serves as long as this object exists.
struct OwnedMetadata {
  std::unique_ptr<pmem::Region> region;
  std::shared_ptr<void> ownership;
  KnownPages pages{};
};

OwnedMetadata own(Node& node, const std::string& name) {
  OwnedMetadata result{nullptr, node.own_region(name)};
  if (result.ownership == nullptr) {
    throw UsageError(
        fmt::format("the metadata of '{}' is being served; end its server first", name));
  }
  result.region = node.open_region(name);
  if (result.region == nullptr) {
    throw UsageError(fmt::format("there is no metadata of a file system '{}'", name));
  }
  OrionSuperblock superblock;
  if (result.region->size() >= kOrionOffset + sizeof superblock) {
    superblock = result.region->read_object<OrionSuperblock>(kOrionOffset);
  }
  if (!is_intact(superblock)) {
    throw UsageError(fmt::format(
        "'{}' is not the metadata of an Orion file system, or its superblock is damaged; give the "
        "file in the directory of the metadata server that has the file system's name",
        name));
  }
  result.pages.set(superblock.groups, superblock.pages);
  return result;
}

}  // namespace

std::vector<fs::Damage> inspect_metadata(Node& node, const std::string& name, bool repair) {
  OwnedMetadata owned = own(node, name);
  if (repair && node.open_region(pair_region(name)) != nullptr) {
    throw UsageError(fmt::format(
        "'{}' has a mirror, whose memory the metadata server loads when it starts, so a "
        "repair would be lost; leave out --repair",
        name));
  }
  return nova::inspect(*owned.region, repair, &owned.pages);
}

std::string dump_metadata(Node& node, const std::string& name,
                          std::optional<fs::InodeNumber> inode) {
  OwnedMetadata owned = own(node, name);
  return nova::dump(*owned.region, inode, &owned.pages);
}

}  // namespace perdura::systems::orion
