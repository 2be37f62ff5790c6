#include "harness/program/companion.h"

#include <fmt/format.h>

#include "platform/base/error.h"
#include "platform/base/path_kind.h"

namespace perdura::harness {

namespace fs = std::filesystem;

fs::path companion(std::string_view name, std::string_view otherwise) {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path installed = folder.parent_path() / PERDURA_LIBRARY_FOLDER;
  for (const fs::path& candidate : {folder / name, installed / name}) {
    if (is_there(candidate)) return candidate;
  }
  throw UsageError(fmt::format("{} is neither in {} nor in {}; {}", name, folder.string(),
                               installed.string(), otherwise));
}

}  // namespace perdura::harness
