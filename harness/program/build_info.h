// What this binary was built from and with; generated when it is built (build_info.cmake).
#pragma once

#include <string_view>

namespace perdura::harness {

struct BuildInfo {
  std::string_view version;
  std::string_view git_revision;  // "unknown" outside a repository
  bool git_dirty = false;         // true if the sources differ from the revision
  std::string_view compiler;
  std::string_view flags;
  std::string_view build_type;
};

const BuildInfo& build_info();

}  // namespace perdura::harness
