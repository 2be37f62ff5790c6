#include "bench/driver/mounted_directory.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "platform/base/error.h"

namespace perdura::bench {
namespace {

constexpr Parameter kPathParameters[] = {
    {.name = "path",
     .type = Name{},
     .usual = "",
     .what = "a directory of a mounted file system, in which the workload works by system calls"},
};

}  // namespace

std::span<const Parameter> path_parameters() { return kPathParameters; }

bool is_path(const harness::Point& point) { return point.settings.system.text == kPathSystem; }

std::string path_of(const harness::Point& point) {
  const auto path = point.parameters.find("path");
  return path == point.parameters.end() ? "" : path->second.text();
}

void find_file_system(harness::Point& point) {
  harness::PointSettings& settings = point.settings;
  if (settings.given("file_system")) {
    throw UsageError(
        fmt::format("{}: file_system is filled in; remove it", settings.where("file_system")));
  }
  if (!is_path(point)) return;
  if (path_of(point).empty()) {
    throw UsageError(
        fmt::format("{}: the system path needs a directory; give --path DIR, or path = \"DIR\" in "
                    "[systems.path]",
                    settings.system.where));
  }
  settings.set("file_system", file_system_at(path_of(point)));
}

void refuse_path(const std::string& path) {
  throw UsageError(fmt::format("{}: {}; path must be a directory in which files can be made", path,
                               std::strerror(errno)));
}

std::string file_system_at(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) refuse_path(path);
  if (!S_ISDIR(found.st_mode)) {
    errno = ENOTDIR;
    refuse_path(path);
  }
  // statfs() returns only a number, which some file systems share; the list of mounts has the name,
  // even of FUSE file systems. If several are mounted at one place, the last one is visible.
  const std::string device =
      fmt::format("{}:{}", gnu_dev_major(found.st_dev), gnu_dev_minor(found.st_dev));
  std::ifstream mounts("/proc/self/mountinfo");
  std::string type;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id;
    std::string parent;
    std::string of_mount;
    words >> id >> parent >> of_mount;
    const auto separator = line.find(" - ");
    if (of_mount != device || separator == std::string::npos) continue;
    std::istringstream(line.substr(separator + 3)) >> type;
  }
  if (!type.empty()) return type;
  struct statfs known {};
  if (statfs(path.c_str(), &known) != 0) refuse_path(path);
  return fmt::format("0x{:x}", static_cast<unsigned long>(known.f_type));
}

}  // namespace perdura::bench
