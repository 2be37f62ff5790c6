// The user on whose behalf an operation is done.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace perdura::fs {

struct Credentials {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups{};  // supplementary ones

  // User 0 has the privileges that Linux divides into capabilities: CAP_DAC_OVERRIDE,
  // CAP_DAC_READ_SEARCH, CAP_CHOWN, CAP_FOWNER, CAP_FSETID, CAP_MKNOD, and for extended attributes
  // CAP_SYS_ADMIN.
  bool is_privileged() const { return uid == 0; }
  bool owns(std::uint32_t owner) const { return uid == owner || is_privileged(); }
  bool is_in(std::uint32_t group) const {
    return gid == group || std::find(groups.begin(), groups.end(), group) != groups.end();
  }
};

}  // namespace perdura::fs
