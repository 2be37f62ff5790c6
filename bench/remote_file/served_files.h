// Real systems beside the emulations (emulations.h): a file of a file system that is spread over
// servers, such as novad and Orion, and Mojim's replicated memory, of which the client has the
// primary copy.
#pragma once

#include <memory>

#include "bench/remote_file/remote_file.h"
#include "services/fs/fs.h"
#include "services/memory/memory.h"

namespace perdura::bench {

// `system` has a cluster; its servers are those of a small file system. The parameters are the
// point's.
std::unique_ptr<RemoteFile> file_of(Platform& platform, const fs::FsSystem& system,
                                    const RemoteFileOptions& options,
                                    const GivenParameters& parameters);
fs::FsConfig config_of(const fs::FsSystem& system, const RemoteFileOptions& options,
                       const GivenParameters& parameters);

// `system` has one copy, the mirror.
std::unique_ptr<RemoteFile> memory_of(const services::MemorySystem& system,
                                      const RemoteFileOptions& options, CompletionMode completion,
                                      const GivenParameters& parameters);
services::MemoryConfig config_of(const RemoteFileOptions& options, CompletionMode completion,
                                 const GivenParameters& parameters);

}  // namespace perdura::bench
