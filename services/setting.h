// A value of one of a system's own parameters, given in the system's entry in a table of systems.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "platform/base/parameter.h"
#include "platform/fabric/needs.h"

namespace perdura::services {

struct Setting {
  std::string_view name;
  UsualValue value = 0;
  fabric::DeviceNeeds needs{};  // added to the needs of a system that has this value
  // With this value nothing survives the server, on purpose. Then the system guarantees `none`,
  // which is not explored: always finding that all is gone says nothing about crash points or
  // servers.
  bool keeps_nothing = false;
};

// Adds the settings of those parameters that are not given.
inline void add_missing(std::span<const Setting> settings, GivenParameters& parameters) {
  for (const Setting& setting : settings) {
    parameters.try_emplace(std::string(setting.name), setting.value.value());
  }
}

}  // namespace perdura::services
