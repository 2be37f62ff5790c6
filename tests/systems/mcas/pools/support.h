// What the tests of pools share.
#pragma once

#include <string_view>

#include "systems/registry/registry.h"

namespace perdura::systems::mcas::test {

inline Key as_key(std::string_view text) { return std::as_bytes(std::span(text)); }
inline const objects::System& pools_system() { return find_object_system("mcas"); }

}  // namespace perdura::systems::mcas::test
