// The commands of `perdura fs` for systems that spread a file system over servers, which a
// configuration file describes (mount/cluster_config.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/program/command.h"
#include "mount/mount.h"
#include "services/fs/fs.h"

namespace perdura::program {

// Makes the parts of these servers; of all that have an address of this host if none are named.
harness::ExitCode make_parts(const fs::FsSystem& system, const std::string& file,
                             const std::vector<std::string>& servers);

// Serves a server's part until SIGINT, SIGTERM or SIGHUP.
harness::ExitCode serve_part(const fs::FsSystem& system, const std::string& file,
                             const std::string& server);

// Serves a mount. `store`: the data store of this host whose memory it uses; empty if none.
void mount_cluster(const fs::FsSystem& system, const std::string& file, const std::string& store,
                   const mount::MountOptions& options);

}  // namespace perdura::program
