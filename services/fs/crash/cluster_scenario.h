// The scenario of a file system over a cluster (FsCluster): servers, and clients on nodes of their
// own, each with a mount of its own. The second client is on the node of a store.
#pragma once

#include <memory>

#include "services/fs/crash/session_scenario.h"

namespace perdura::fs {

// `system` must outlive it.
std::unique_ptr<services::CrashScenario> cluster_scenario(const FsSystem& system, FsConfig config,
                                                          FsCrashPlan plan);

}  // namespace perdura::fs
