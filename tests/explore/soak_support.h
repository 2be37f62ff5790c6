// What tests of soaks share.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "explore/soak.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"

namespace perdura::explore::test {

inline const sim::Profile& soaked_testbed() {
  static const sim::Profile profile =
      sim::load_profile(perdura::test::profile_path("erda-connectx3"));
  return profile;
}

// The case of this name with another expectation than the table's.
inline SoakCase case_of(std::string_view system, std::string_view setting, std::string_view server,
                        services::GuaranteeLevel expected) {
  for (SoakCase one : soak_cases({systems::find_system(system).value()}, soaked_testbed())) {
    if (one.setting.name != setting || explored_name(one.model) != server) continue;
    one.expected = expected;
    return one;
  }
  ADD_FAILURE() << system << " has no setting " << setting << " on " << server;
  return {};
}

}  // namespace perdura::explore::test
