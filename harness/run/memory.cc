#include "harness/run/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

// The number in a file that contains one number; nullopt if it says "max".
std::optional<Bytes> number_in(const fs::path& file) {
  std::ifstream input(file);
  Bytes number = 0;
  return input >> number ? std::optional(number) : std::nullopt;
}

// The number after `name` in a file whose lines are a name and a number.
std::optional<Bytes> number_of(const std::string& name, const fs::path& file) {
  std::ifstream input(file);
  for (std::string line; std::getline(input, line);) {
    std::istringstream words(line);
    std::string first;
    Bytes number = 0;
    if (words >> first >> number && first == name) return number;
  }
  return std::nullopt;
}

// The file names of a cgroup version.
struct Names {
  const char* limit;
  const char* used;
  const char* droppable;  // key in memory.stat, including all groups below
};
constexpr Names kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Names kVersion2{"memory.max", "memory.current", "inactive_file"};

// All ancestors of a group limit it, too. In a container the ancestors, and the group's own path,
// may be hidden; then the root of the mount is the container's group.
void limit_by(AvailableMemory& memory, const fs::path& mount, const fs::path& group,
              const Names& names) {
  for (fs::path path = group.relative_path();; path = path.parent_path()) {
    const fs::path folder = mount / path;
    const auto limit = number_in(folder / names.limit);
    const auto used = number_in(folder / names.used);
    if (limit && used) {
      const Bytes droppable = number_of(names.droppable, folder / "memory.stat").value_or(0);
      const Bytes taken = *used - std::min(*used, droppable);
      const Bytes left = *limit - std::min(*limit, taken);
      if (left < memory.bytes) {
        memory = {left, fmt::format("the cgroup /{}", path.string())};
      }
    }
    if (path.empty()) return;
  }
}

}  // namespace

std::optional<AvailableMemory> available_memory(const fs::path& root) {
  const auto kilobytes = number_of("MemAvailable:", root / "proc/meminfo");
  if (!kilobytes) return std::nullopt;
  AvailableMemory memory{*kilobytes * KiB, "this machine"};
  // A line has a hierarchy number, controllers and a path; version 2 has the number 0 and no
  // controllers.
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path group = line.substr(second + 1);
    if (controllers == ",,") {
      limit_by(memory, root / "sys/fs/cgroup", group, kVersion2);
    } else if (controllers.find(",memory,") != std::string::npos) {
      limit_by(memory, root / "sys/fs/cgroup/memory", group, kVersion1);
    }
  }
  return memory;
}

std::string memory_text(Bytes bytes) {
  const auto in = [&](Bytes unit) {
    return static_cast<double>(bytes) / static_cast<double>(unit);
  };
  if (bytes >= 10 * GiB) return fmt::format("{:.0f} GiB", in(GiB));
  if (bytes >= GiB) return fmt::format("{:.1f} GiB", in(GiB));
  return fmt::format("{:.0f} MiB", std::max(1.0, in(MiB)));
}

}  // namespace perdura::harness
