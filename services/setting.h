// A value of one of a system's own parameters, as its entry in a table of systems specifies it.
#pragma once

#include <cstdint>
#include <string_view>

namespace perdura::services {

struct Setting {
  std::string_view name;
  std::uint64_t value = 0;
};

}  // namespace perdura::services
