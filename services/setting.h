// A value of one of a system's own parameters, as its entry in a table of systems specifies it.
#pragma once

#include <string>
#include <string_view>

#include "platform/base/parameter.h"
#include "platform/fabric/needs.h"

namespace perdura::services {

struct Setting {
  std::string_view name;
  UsualValue value = 0;
  fabric::DeviceNeeds needs{};  // that the system has with this value, besides its own
  // With this value nothing outlives the server, on purpose. Then what it guarantees is `none`,
  // which is not explored: to find that all is gone each time says nothing of moments or servers.
  bool keeps_nothing = false;
};

}  // namespace perdura::services
