// The scenario of a file system of one node: its clients are programs there, and share the mount.
#pragma once

#include <memory>

#include "services/fs/crash/session_scenario.h"

namespace perdura::fs {

// `system` must outlive it.
std::unique_ptr<services::CrashScenario> node_scenario(const FsSystem& system, FsConfig config,
                                                       FsCrashPlan plan);

}  // namespace perdura::fs
