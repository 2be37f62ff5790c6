#include "harness/results/file_system.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "platform/pmem/mapped/storage.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

// Replaces octal escapes such as \040, in which the kernel writes blanks.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

bool is_below(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

std::string dax_of_new_file(const fs::path& directory) {
  const int file = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) return "unknown";
  struct statx info {};
  const int problem = statx(file, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &info);
  close(file);
  if (problem != 0 || (info.stx_attributes_mask & STATX_ATTR_DAX) == 0) return "unknown";
  return (info.stx_attributes & STATX_ATTR_DAX) != 0 ? "yes" : "no";
}

}  // namespace

FileSystem file_system_of(const fs::path& directory, const fs::path& mounts) {
  std::error_code ignored;
  const fs::path path = fs::weakly_canonical(directory, ignored);
  FileSystem found{directory, "unknown", "unknown", "unknown", dax_of_new_file(path), "", ""};
  std::size_t longest = 0;
  std::ifstream input(mounts);
  for (std::string line; std::getline(input, line);) {
    std::istringstream words(line);
    const std::vector<std::string> fields{std::istream_iterator<std::string>(words), {}};
    // Optional fields end with a dash; type, source and the file system's own options follow.
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 4) continue;
    const std::string mount_point = unescaped(fields[4]);
    // If several mounts are at one path, only the last one is visible.
    if (!is_below(path, mount_point) || mount_point.size() < longest) continue;
    longest = mount_point.size();
    found.mount_point = mount_point;
    found.type = dash[1];
    found.mount_options = fmt::format("{},{}", fields[5], dash[3]);
  }
  return found;
}

FileSystem persistent_memory_of(const fs::path& path) {
  const auto known = pmem::mapped::storage_of(path);
  FileSystem found = known.kind == pmem::mapped::StorageKind::device_dax
                         ? FileSystem{path, "none", "none", "none", "yes", "", ""}
                         : file_system_of(path);
  found.granularity = to_string(known.granularity);
  found.promise = known.promise;
  return found;
}

std::string to_string(const FileSystem& system) {
  return fmt::format("{} on {} at {} ({}), DAX: {}", system.directory.string(), system.type,
                     system.mount_point, system.mount_options, system.dax);
}

}  // namespace perdura::harness
