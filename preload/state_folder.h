// The folder beside a replicated file; cluster.h lists its contents.
#pragma once

#include <string>

namespace perdura::preload {

// The name of the region.
inline constexpr const char* kRegion = "data";

inline std::string state_folder(const std::string& file) { return file + ".mojim"; }

}  // namespace perdura::preload
