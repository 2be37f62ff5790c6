// The system `path` of drivers that can also work in a directory of this machine by system calls, on whatever file
// system is mounted there.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "harness/run/point.h"
#include "platform/base/parameter.h"

namespace perdura::bench {

inline constexpr std::string_view kPathSystem = "path";

// The parameters of the system `path`.
std::span<const Parameter> path_parameters();

// A parameter of all points of such a driver, which find_file_system() fills in, so that results tell file systems
// apart.
inline constexpr Parameter kFileSystem{
    .name = "file_system",
    .type = Name{},
    .usual = "",
    .identifies = true,
    .noun = "file system",
    .title = "File system",
    .what = "filled in: what the kernel says is mounted at the path"};

bool is_path(const harness::Point& point);
// The directory of a point that runs the system `path`; empty if it names none.
std::string path_of(const harness::Point& point);
// Fills in `file_system` if the point runs the system `path`. Throws UsageError if it names no directory, or a point
// gives `file_system` itself.
void find_file_system(harness::Point& point);

// The type of the file system that contains a path, as the kernel names it: "ext4". Throws UsageError if there is no
// such directory.
std::string file_system_at(const std::string& path);

// Throws UsageError with the reason that errno has: nothing can be made in the directory `path`.
[[noreturn]] void refuse_path(const std::string& path);

}  // namespace perdura::bench
