// What the tests of pools share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "systems/registry/registry.h"

namespace perdura::systems::mcas::test {

inline Key as_key(std::string_view text) { return std::as_bytes(std::span(text)); }
inline const objects::System& pools_system() { return find_object_system("mcas-pools"); }

// Of a test for each engine.
inline std::string engine_name(const testing::TestParamInfo<std::string>& info) {
  return info.param == "hstore" ? "Hstore" : "HstoreCc";
}

}  // namespace perdura::systems::mcas::test
