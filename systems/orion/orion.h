// Orion, a file system over a cluster ("Building Distributed Systems with Non-Volatile Main Memories
// and RDMA Networks", Yang, 2019; chapter 4). The metadata server (mds/) has all inodes and their
// logs, data stores (store/) have the pages of files, and clients (client/) keep copies of the logs
// that they use, which they READ from the metadata server and to which they commit entries.
#pragma once

#include "services/fs/fs.h"

namespace perdura::systems {

extern const fs::FsSystem kOrion;

}  // namespace perdura::systems
