// novad: the files of a node's NOVA for clients on other nodes (chapter 5 of "Building Distributed
// Systems with Non-Volatile Main Memories and RDMA Networks", Yang, 2019; section 5.3.1); see
// docs/systems/novad.md.
#pragma once

#include "services/fs/fs.h"

namespace perdura::systems {

extern const fs::FsSystem kNovad;

}  // namespace perdura::systems
