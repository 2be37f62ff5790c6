// Examines the memory of an MDS that does not serve (services/fs/fs.h, FsSystem::inspect and dump). The
// pages of data stores have no checksums, so nothing is said about data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "services/fs/fs.h"

namespace perdura::systems::orion {

// Throws UsageError if the node has no metadata of that name, if it is being served, or if `repair` is
// set and the MDS has a mirror: it would load the mirror's memory, and the repair would be lost.
std::vector<fs::Damage> inspect_metadata(Node& node, const std::string& name, bool repair);
std::string dump_metadata(Node& node, const std::string& name,
                          std::optional<fs::InodeNumber> inode);

}  // namespace perdura::systems::orion
